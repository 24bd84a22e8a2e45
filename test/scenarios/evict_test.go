package scenarios_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/internal/config"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/stages"
)

func limitedDir(name, limit string) part {
	return func(p *v1.Pod) {
		q := resource.MustParse(limit)
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{
			Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: &q}},
		})
	}
}

func priority(n int32) part { return func(p *v1.Pod) { p.Spec.Priority = &n } }

func asks(name v1.ResourceName, limit string) func(c *v1.Container) {
	return func(c *v1.Container) {
		c.Resources.Limits = v1.ResourceList{name: resource.MustParse(limit)}
		c.Resources.Requests = c.Resources.Limits
	}
}

func TestPodsOverALimitOfLocalStorageAreEvicted(t *testing.T) {
	for name, tc := range map[string]struct {
		parts []part
		says  string
	}{
		"volume": {
			[]part{limitedDir("work", "1Mi"), does(`{"web":{"use":[{"from":"1m","volumes":{"work":"2Mi"}}]}}`)},
			`Usage of EmptyDir volume "work" exceeds the limit "1Mi". `,
		},
		"layer and logs": {
			[]part{container("web", "app:1", asks(v1.ResourceEphemeralStorage, "1Gi")), does(`{"web":{"use":[{"from":"1m","disk":"1Gi","logs":"1Ki"}]}}`)},
			"Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ",
		},
		"one of two containers": {
			[]part{
				container("web", "app:1", asks(v1.ResourceEphemeralStorage, "1Gi")), container("b", "app:1", asks(v1.ResourceEphemeralStorage, "9Gi")),
				does(`{"web":{"use":[{"from":"1m","disk":"2Gi"}]}}`),
			},
			`Container web exceeded its local ephemeral storage limit "1Gi". `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, setup{sim: crisim.Config{Images: here1}, evicts: true}, func(n *node) {
				n.write("s", manifest("s", tc.parts...))
				n.write("other", manifest("other"))
				n.untilRuns(3*time.Second, "s", "web")
				n.pass(55 * time.Second)
				require.Equal(n, v1.PodRunning, n.phase("s"))
				n.pass(20 * time.Second)
				phase, reason, message := n.judgement("s")
				require.Equal(n, v1.PodFailed, phase)
				require.Equal(n, "Evicted", reason)
				require.Equal(n, tc.says, message)
				require.False(n, n.runs("s", "web"))
				require.True(n, n.runs("other", "web"))
				n.pass(10 * time.Second)
				_, left := n.find("s", "web")
				require.False(n, left, "what it took is given back")
				n.kill()
				n.start()
				n.pass(time.Hour)
				phase, reason, _ = n.judgement("s")
				require.Equal(n, v1.PodFailed, phase, "for good")
				require.Equal(n, "Evicted", reason)
				require.Len(n, n.starts("s", "web"), 1)
			})
		})
	}
}

func TestPodsStayWithinTheirLimitsUnharmed(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}, evicts: true, configure: func(c *config.Config) {
		off := false
		c.Kubelet.LocalStorageCapacityIsolation = &off
	}}, func(n *node) {
		n.write("s", manifest("s", limitedDir("work", "1Mi"), does(`{"web":{"use":[{"volumes":{"work":"2Mi"}}]}}`)))
		n.pass(5 * time.Minute)
		require.True(n, n.runs("s", "web"), "localStorageCapacityIsolation is off")
	})
}

// apiPods is a source of pods of the API that never change.
type apiPods []*v1.Pod

func (apiPods) Name() string { return pod.SourceAPI }

func (l apiPods) Run(ctx context.Context, emit func(stages.Event)) error {
	for i, p := range l {
		emit(stages.Event{
			Key: pod.KeyOf(p.UID), Change: pod.SpecSet{Spec: &pod.Spec{Pod: p, Source: pod.SourceAPI, Sum: uint64(i), Seen: time.Now()}}, Seen: time.Now(),
		})
	}
	emit(stages.Event{Topic: pipeline.Synced(pod.SourceAPI)})
	<-ctx.Done()
	return context.Cause(ctx)
}

func apiPod(name string, parts ...part) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "default", UID: types.UID("uid-" + name), Annotations: map[string]string{pod.AnnotationSource: pod.SourceAPI},
	}}
	for _, add := range append([]part{container("web", "app:1")}, parts...) {
		add(p)
	}
	return p
}

// Five pods take 12 Gi each of 64 Gi, and what is left is less than a tenth.
func TestNodeThatRunsOutOfMemoryEvictsInOrder(t *testing.T) {
	takes := does(`{"web":{"use":[{"from":"1m","memory":"12Gi"}],"term":{"after":"10m"}}}`)
	asked := func(p *v1.Pod) { asks(v1.ResourceMemory, "16Gi")(&p.Spec.Containers[0]) }
	pods := apiPods{
		apiPod("system", priority(2_000_001_000), takes), apiPod("wanted", priority(100), takes),
		apiPod("asked", asked, takes), apiPod("greedy", takes),
	}
	scenario(t, setup{sim: crisim.Config{Images: here1}, evicts: true, api: pods}, func(n *node) {
		n.write("static", manifest("static", takes))
		n.untilRuns(3*time.Second, "greedy", "web")
		n.pass(50 * time.Second)
		require.Equal(n, v1.PodRunning, n.phase("greedy"))
		n.pass(30 * time.Second)
		_, reason, message := n.judgement("greedy")
		require.Equal(n, "Evicted", reason, "takes more than it asked for, and has the lowest priority")
		require.Equal(n, "The node was low on resource: memory. Threshold quantity: 6871947673, available: 4Gi. "+
			"Container web was using 12Gi, request is 0, has larger consumption of memory. ", message)
		n.pass(10 * time.Minute)
		for _, name := range []string{"system", "wanted", "asked", "static"} {
			require.True(n, n.runs(name, "web"), name)
		}
		v, _ := n.view("greedy")
		require.Contains(n, fmt.Sprint(v.Status.Conditions), "DisruptionTarget")
	})
}

func TestImagesGoWhenTheDiskIsFullAndComeBackWhenTheyAreWanted(t *testing.T) {
	images := map[string]crisim.Image{
		"app:1": {Present: true, Size: 20 << 30}, "pause:1": {Present: true, Size: 10 << 30, Pinned: true},
		"old:1": {Present: true, Size: 30 << 30}, "old:2": {Present: true, Size: 29 << 30},
	}
	scenario(t, setup{sim: crisim.Config{Images: images}, evicts: true}, func(n *node) {
		n.write("s", manifest("s"))
		n.untilRuns(3*time.Second, "s", "web")
		n.pass(11 * time.Minute)
		var removed []string
		for _, c := range n.calls("", "RemoveImage") {
			removed = append(removed, c.Object)
		}
		require.Len(n, removed, 1, "89 percent were taken, and 80 are to be")
		require.True(n, n.runs("s", "web"))
		require.Zero(n, n.count("", "PullImage"))
		n.write("b", manifest("b", container("web", "old:1")))
		n.write("c", manifest("c", container("web", "old:2")))
		n.untilRuns(3*time.Second, "b", "web")
		n.untilRuns(3*time.Second, "c", "web")
		require.Equal(n, 1, n.count("", "PullImage"))
	})
}

func TestFullDiskFreesImagesBeforeItEvicts(t *testing.T) {
	images := map[string]crisim.Image{"app:1": {Present: true}, "old:1": {Present: true, Size: 60 << 30}}
	s := apiPod("s", does(`{"web":{"use":[{"from":"10m","disk":"35Gi"},{"from":"20m","disk":"95Gi"}]}}`))
	scenario(t, setup{sim: crisim.Config{Images: images}, evicts: true, api: apiPods{s}}, func(n *node) {
		n.untilRuns(3*time.Second, "s", "web")
		n.pass(15 * time.Minute)
		require.True(n, n.runs("s", "web"))
		require.Equal(n, 1, n.count("", "RemoveImage"))
		n.pass(6 * time.Minute)
		_, reason, message := n.judgement("s")
		require.Equal(n, "Evicted", reason)
		require.Contains(n, message, "The node was low on resource: ephemeral-storage.")
	})
}
