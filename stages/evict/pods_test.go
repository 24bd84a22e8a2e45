package evict_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/usage"
	"github.com/flowlet/flowlet/stages/evict"
)

// aPod is a pod of the API with one container "web".
func aPod(name string, change ...func(p *v1.Pod)) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name), Annotations: map[string]string{}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "web"}}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func requests(name v1.ResourceName, q string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Requests = v1.ResourceList{name: resource.MustParse(q)}
	}
}

func limits(q string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse(q)}
	}
}

func priority(n int32) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.Priority = &n } }

func static(p *v1.Pod) { p.Annotations[pod.AnnotationSource] = pod.SourceFile }

func emptyDir(medium v1.StorageMedium, limit string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		e := &v1.EmptyDirVolumeSource{Medium: medium}
		if limit != "" {
			q := resource.MustParse(limit)
			e.SizeLimit = &q
		}
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "work", VolumeSource: v1.VolumeSource{EmptyDir: e}})
	}
}

// uses is what a pod with one container takes.
func uses(memory, layer, logs, volume int64) *usage.Pod {
	return &usage.Pod{
		Containers: []usage.Container{{Name: "web", Memory: memory, Writable: usage.Disk{Bytes: layer, Inodes: layer / mi}, Logs: usage.Disk{Bytes: logs}}},
		Volumes:    map[string]usage.Disk{"work": {Bytes: volume, Inodes: volume / mi}},
	}
}

func TestLimitsOfLocalStorage(t *testing.T) {
	for name, tc := range map[string]struct {
		pod    *v1.Pod
		uses   *usage.Pod
		apart  bool // layers are on a file system of their own
		limits bool
		says   string
	}{
		"volume over its limit": {
			aPod("p", emptyDir("", "1Mi")), uses(0, 0, 0, mi+1), false, true, `Usage of EmptyDir volume "work" exceeds the limit "1Mi". `,
		},
		"volume at its limit":      {aPod("p", emptyDir("", "1Mi")), uses(0, 0, 0, mi), false, true, ""},
		"volume without a limit":   {aPod("p", emptyDir("", "")), uses(0, 0, 0, mi), false, false, ""},
		"limit 0 is none":          {aPod("p", emptyDir("", "0")), uses(0, 0, 0, mi), false, false, ""},
		"the kernel limits memory": {aPod("p", emptyDir(v1.StorageMediumMemory, "1Mi")), uses(0, 0, 0, mi), false, false, ""},
		"container: layer and logs": {
			aPod("p", limits("10Mi")), uses(0, 6*mi, 5*mi, 0), false, true, "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. ",
		},
		"layer on another file system": {aPod("p", limits("10Mi")), uses(0, 6*mi, 5*mi, 0), true, true, ""},
		"volumes count for the pod": {
			aPod("p", limits("10Mi"), emptyDir("", "")), uses(0, 4*mi, 0, 7*mi), false, true, "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. ",
		},
		"one container over its own limit": {
			aPod("p", limits("10Mi"), func(p *v1.Pod) {
				p.Spec.Containers = append(p.Spec.Containers, *p.Spec.Containers[0].DeepCopy())
				p.Spec.Containers[1].Name = "other"
			}), uses(0, 11*mi, 0, 0), false, true, `Container web exceeded its local ephemeral storage limit "10Mi". `,
		},
		"less than the limits": {aPod("p", limits("10Mi"), emptyDir("", "5Mi")), uses(0, mi, mi, mi), false, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.limits, evict.Limited(tc.pod))
			require.Equal(t, tc.says, evict.Over(tc.pod, tc.uses, !tc.apart))
		})
	}
}

// oneDisk is a node with everything on one file system.
var oneDisk = &usage.Node{Nodefs: usage.Filesystem{Device: 1}, Images: usage.Filesystem{Device: 1}, Layers: usage.Filesystem{Device: 1}}

func ranked(signal evict.Signal, n *usage.Node, list ...evict.Candidate) []string {
	var out []string
	for _, c := range evict.Rank(signal, n, list) {
		out = append(out, c.Pod.Name)
	}
	return out
}

func candidate(p *v1.Pod, u *usage.Pod) evict.Candidate {
	return evict.Candidate{Key: pod.KeyOf(p.UID), Pod: p, Used: u}
}

func TestRankByMemory(t *testing.T) {
	require.Equal(t, []string{"unknown", "low", "much", "little", "high", "within"}, ranked(evict.MemoryAvailable, oneDisk,
		candidate(aPod("within", requests(v1.ResourceMemory, "500Mi"), priority(-5)), uses(400*mi, 0, 0, 0)),
		candidate(aPod("high", priority(100)), uses(800*mi, 0, 0, 0)),
		candidate(aPod("little", requests(v1.ResourceMemory, "500Mi")), uses(510*mi, 0, 0, 0)),
		candidate(aPod("much"), uses(100*mi, 0, 0, 0)),
		candidate(aPod("low", priority(-5)), uses(mi, 0, 0, 0)),
		candidate(aPod("unknown", priority(100)), nil),
	))
}

func TestRankByDiskCountsWhatIsOnThatDisk(t *testing.T) {
	apart := &usage.Node{Nodefs: usage.Filesystem{Device: 1}, Images: usage.Filesystem{Device: 2}, Layers: usage.Filesystem{Device: 2}}
	layer := candidate(aPod("layer"), uses(0, 900*mi, 0, 0))
	logs := candidate(aPod("logs"), uses(0, 0, 500*mi, 0))
	volume := candidate(aPod("volume"), uses(0, 0, 0, 700*mi))
	idle := candidate(aPod("idle"), uses(0, 0, 0, 0))
	list := []evict.Candidate{idle, logs, layer, volume}
	require.Equal(t, []string{"layer", "volume", "logs", "idle"}, ranked(evict.NodeFsAvailable, oneDisk, list...))
	require.Equal(t, []string{"volume", "logs", "idle", "layer"}, ranked(evict.NodeFsAvailable, apart, list...))
	require.Equal(t, []string{"layer", "idle", "logs", "volume"}, ranked(evict.ImageFsAvailable, apart, list...))
	require.Equal(t, []string{"layer", "volume", "idle", "logs"}, ranked(evict.NodeFsInodesFree, oneDisk, list...))
}

func TestRankByProcesses(t *testing.T) {
	few, many := uses(0, 0, 0, 0), uses(0, 0, 0, 0)
	few.Processes, many.Processes = 3, 300
	require.Equal(t, []string{"low", "many", "few"}, ranked(evict.PIDAvailable, oneDisk,
		candidate(aPod("few"), few), candidate(aPod("many"), many), candidate(aPod("low", priority(-1)), few)))
}
