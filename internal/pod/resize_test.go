package pod_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/internal/pod"
)

// sized is a pod with one container that requests that much CPU.
func sized(cpu string, more ...v1.Container) *v1.Pod {
	web := v1.Container{Name: "web"}
	web.Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), "hugepages-2Mi": resource.MustParse("2Mi")}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"},
		Spec:       v1.PodSpec{Containers: append([]v1.Container{web}, more...)},
	}
}

func wants(p *v1.Pod) pod.SpecSet {
	return pod.SpecSet{Spec: &pod.Spec{Pod: p, Source: pod.SourceFile, Seen: time.Unix(1, 0)}}
}

func folded(changes ...pod.Change) *pod.State {
	var s *pod.State
	for _, c := range changes {
		s, _ = pod.Fold(s, c)
	}
	return s
}

func runs(name, id string, state pod.ContainerState) pod.Observed {
	return pod.Observed{Partial: true, Containers: []pod.Container{{ID: id, Name: name, State: state, CreatedAt: time.Unix(2, 0)}}}
}

func cpuOf(p *v1.Pod) string { return p.Spec.Containers[0].Resources.Requests.Cpu().String() }

func TestPodRunsWithWhatItWasGiven(t *testing.T) {
	small, large := sized("500m"), sized("2")
	s := folded(wants(small), wants(large))
	require.Equal(t, "2", cpuOf(s.Pod()), "before its admission it has what it asks for")

	s = folded(wants(small), pod.Admitted{At: time.Unix(2, 0)}, runs("web", "c1", pod.Running))
	require.Same(t, small, s.Pod())
	asked := wants(large)
	s, _ = pod.Fold(s, asked)
	require.Equal(t, "500m", cpuOf(s.Pod()))
	require.Same(t, large, s.Spec.Asked)
	require.Equal(t, "2", cpuOf(large), "what the source shares is left alone")
	huge := s.Pod().Spec.Containers[0].Resources.Requests["hugepages-2Mi"]
	require.Equal(t, "2Mi", huge.String())
	_, changed := pod.Fold(s, asked)
	require.False(t, changed, "it is known")

	late, _ := pod.Fold(s, pod.Resized{Asked: sized("9"), At: time.Unix(3, 0)})
	require.Same(t, s.Spec, late.Spec, "it asks for something else by now")

	back, _ := pod.Fold(s, wants(small))
	require.Nil(t, back.Spec.Asked, "withdrawn")
	require.Same(t, small, back.Pod())

	s, _ = pod.Fold(s, pod.Resized{Asked: large, At: time.Unix(3, 0)})
	require.Same(t, large, s.Pod())
	require.Nil(t, s.Spec.Asked)
	require.Equal(t, map[string]string{"web": "c1"}, s.Resize.Left)
	require.Equal(t, int64(500), s.Resize.From.Containers["web"].CPURequest)

	other, _ := pod.Fold(s, pod.Actuated{At: time.Unix(2, 0), Name: "web", ID: "c1"})
	require.NotNil(t, other.Resize.Left["web"], "of another resize")
	s, _ = pod.Fold(s, pod.Actuated{At: time.Unix(3, 0), Name: "web", ID: "c1"})
	require.Empty(t, s.Resize.Left)
	s, _ = pod.Fold(s, pod.Actuated{At: time.Unix(3, 0)})
	require.Nil(t, s.Resize)
}

func TestOnlyWhatRunsIsResized(t *testing.T) {
	s := folded(wants(sized("1", v1.Container{Name: "same"}, v1.Container{Name: "dead"})), pod.Admitted{At: time.Unix(2, 0)},
		runs("web", "c1", pod.Running), runs("same", "c2", pod.Running), runs("dead", "c3", pod.Exited))
	more := sized("2", v1.Container{Name: "same"}, v1.Container{Name: "dead"})
	more.Spec.Containers[2].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}
	s, _ = pod.Fold(s, wants(more))
	s, _ = pod.Fold(s, pod.Resized{Asked: more, At: time.Unix(3, 0)})
	require.Equal(t, map[string]string{"web": "c1"}, s.Resize.Left)

	s, _ = pod.Fold(s, pod.Actuated{At: time.Unix(3, 0)})
	s, _ = pod.Fold(s, runs("web", "c1", pod.Exited))
	require.Nil(t, s.Resize, "what is started in its place has what it was given")
}

func TestContainerMadeWithWhatThePodHadBeforeIsResized(t *testing.T) {
	s := folded(wants(sized("1")), pod.Admitted{At: time.Unix(2, 0)})
	had := s.Allocation
	large := sized("2")
	s, _ = pod.Fold(s, wants(large))
	s, _ = pod.Fold(s, pod.Resized{Asked: large, At: time.Unix(3, 0)})
	s, _ = pod.Fold(s, pod.Actuated{At: time.Unix(3, 0)})
	require.Nil(t, s.Resize)
	late := pod.Facts{runs("web", "c1", pod.Running), pod.MadeWith{Name: "web", ID: "c1", With: had, At: time.Unix(4, 0)}}
	s, _ = pod.Fold(s, pod.StageEnded{Facts: late})
	require.Equal(t, map[string]string{"web": "c1"}, s.Resize.Left)
	require.Equal(t, int64(1000), s.Resize.From.Containers["web"].CPURequest)

	s, _ = pod.Fold(s, pod.Actuated{At: s.Resize.At, Name: "web", ID: "c1"})
	require.Nil(t, s.Resize)
	s, _ = pod.Fold(s, pod.StageEnded{Facts: pod.Facts{runs("web", "c2", pod.Running), pod.MadeWith{Name: "web", ID: "c2", With: s.Allocation}}})
	require.Nil(t, s.Resize)
}

func TestAllocationOutlivesTheAgent(t *testing.T) {
	large := sized("2")
	s := folded(wants(sized("1")), pod.Admitted{At: time.Unix(2, 0)}, runs("web", "c1", pod.Running), wants(large),
		pod.Resized{Asked: large, At: time.Unix(3, 0)}, wants(sized("4")))
	text, err := json.Marshal(pod.RecordOf(s))
	require.NoError(t, err)
	var r pod.Record
	require.NoError(t, json.Unmarshal(text, &r))

	s = folded(pod.Restored{Record: r})
	require.Equal(t, map[string]string{"web": "c1"}, s.Resize.Left, "it was not looked at yet")
	s, _ = pod.Fold(s, wants(sized("4")))
	require.Equal(t, "2", cpuOf(s.Pod()))
	require.NotNil(t, s.Spec.Asked)
	s, _ = pod.Fold(s, runs("web", "c1", pod.Running))
	require.Equal(t, map[string]string{"web": "c1"}, s.Resize.Left)
}

func TestToldIsThatOfTheNewestLook(t *testing.T) {
	look := func(at int64, limit int64) pod.Observed {
		o := runs("web", "c1", pod.Running)
		o.Ended = time.Unix(at, 0)
		o.Containers[0].Detailed, o.Containers[0].Told = true, &pod.Told{MemoryLimit: limit, User: &v1.LinuxContainerUser{UID: 7}}
		return o
	}
	s := folded(wants(sized("1")), look(10, 100), look(12, 300), look(11, 200))
	c, _ := s.Newest("web")
	require.Equal(t, int64(300), c.Told.MemoryLimit)
	_, changed := pod.Fold(s, look(20, 300))
	require.False(t, changed, "it says the same")
}

func TestMustRestart(t *testing.T) {
	c := &v1.Container{Name: "web", ResizePolicy: []v1.ContainerResizePolicy{
		{ResourceName: v1.ResourceCPU, RestartPolicy: v1.NotRequired}, {ResourceName: v1.ResourceMemory, RestartPolicy: v1.RestartContainer},
	}}
	r := &pod.Resize{From: pod.Allocation{Containers: map[string]pod.Amounts{"web": {CPULimit: 1, MemoryLimit: 1}}}}
	to := func(a pod.Amounts) *pod.Allocation {
		return &pod.Allocation{Containers: map[string]pod.Amounts{"web": a}}
	}
	require.False(t, r.MustRestart(c, to(pod.Amounts{CPULimit: 2, MemoryLimit: 1})))
	require.True(t, r.MustRestart(c, to(pod.Amounts{CPULimit: 1, MemoryLimit: 2})))
	require.True(t, r.MustRestart(c, to(pod.Amounts{CPULimit: 1, MemoryLimit: 1, MemoryRequest: 1})))
	c.ResizePolicy = nil
	require.False(t, r.MustRestart(c, to(pod.Amounts{MemoryLimit: 2})))
}

// Whatever happens in whatever order: a pod runs with what it was given, and
// what it asks for is kept beside that exactly while it is something else.
func TestAllocationAndSpecNeverDisagree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SampledFrom([]string{"1", "2", "3"})
		s := folded(wants(sized(sizes.Draw(t, "first"))), pod.Admitted{At: time.Unix(2, 0)})
		asked := cpuOf(s.Pod())
		for i := range rapid.IntRange(1, 20).Draw(t, "steps") {
			at := time.Unix(int64(10+i), 0)
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				asked = sizes.Draw(t, "asks")
				s, _ = pod.Fold(s, wants(sized(asked)))
			case 1:
				s, _ = pod.Fold(s, pod.Resized{Asked: s.Spec.Asked, At: at})
			case 2:
				s, _ = pod.Fold(s, runs("web", rapid.SampledFrom([]string{"c1", "c2"}).Draw(t, "id"), rapid.SampledFrom([]pod.ContainerState{pod.Running, pod.Exited}).Draw(t, "state")))
			case 3:
				if r := s.Resize; r != nil {
					s, _ = pod.Fold(s, pod.StageEnded{Facts: pod.Facts{pod.Actuated{At: r.At, Name: "web", ID: r.Left["web"]}, pod.Actuated{At: r.At}}})
				}
			case 4:
				s = folded(pod.Restored{Record: pod.RecordOf(s)}, wants(sized(asked)))
			}
			require.Equal(t, pod.AllocationOf(s.Pod()), s.Allocation)
			require.Equal(t, asked != cpuOf(s.Pod()), s.Spec.Asked != nil)
			if s.Spec.Asked != nil {
				require.Equal(t, asked, cpuOf(s.Spec.Asked))
			}
			if r := s.Resize; r != nil {
				require.True(t, r.Pod || len(r.Left) > 0, "a resize that is done is over")
			}
		}
	})
}
