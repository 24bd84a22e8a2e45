package admit_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/admit"
)

// asking returns a pod that has been given a CPU and asks for something else.
func asking(name string, change ...func(*v1.Pod)) *pod.State {
	s := state(name, requests("cpu", "1"))
	copied := *s
	spec := *s.Spec
	spec.Asked = state(name, append([]func(*v1.Pod){requests("cpu", "1")}, change...)...).Pod()
	copied.Spec = &spec
	return &copied
}

func TestResizesNeedRoom(t *testing.T) {
	l := admit.NewLedger(node())
	l.Reserve(state("other", requests("cpu", "2")))
	l.Reserve(state("a", requests("cpu", "1")))
	for name, tc := range map[string]struct {
		s               *pod.State
		reason, message string
	}{
		"fits":               {asking("a", requests("cpu", "2")), "", ""},
		"others in the way":  {asking("a", requests("cpu", "3")), "Deferred", "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"},
		"never":              {asking("a", requests("cpu", "5")), "Infeasible", "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000"},
		"another QoS class":  {asking("a", requests()), "Infeasible", "Pod QOS Class may not change as a result of resizing: it is Burstable and would be BestEffort"},
		"asks for no change": {state("a", requests("cpu", "1")), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			ok, reason, message := l.Resizable(tc.s)
			require.Equal(t, tc.reason == "", ok)
			require.Equal(t, tc.reason, reason)
			require.Equal(t, tc.message, message)
		})
	}
}

func TestResizeTakesTheRoomAtOnce(t *testing.T) {
	l := admit.NewLedger(node())
	l.Reserve(state("a", requests("cpu", "1")))
	l.Reserve(state("b", requests("cpu", "1")))
	s := asking("a", requests("cpu", "3"))
	facts, err := l.Resize(t.Context(), s)
	require.NoError(t, err)
	require.Same(t, s.Spec.Asked, facts[0].(pod.Resized).Asked)
	_, err = l.Resize(t.Context(), asking("b", requests("cpu", "2")))
	require.ErrorContains(t, err, "Deferred: Node didn't have enough resource: cpu")
	facts, err = l.Admit(t.Context(), state("c", requests("cpu", "1")))
	require.NoError(t, err)
	require.IsType(t, pod.Rejected{}, facts[0])
}

func TestMemoryOfContainersWithSwapStays(t *testing.T) {
	c := node()
	c.Swaps = func(*v1.Pod, *v1.Container) bool { return true }
	l := admit.NewLedger(c)
	more := requests("cpu", "1", "memory", "1Gi")
	ok, reason, _ := l.Resizable(asking("a", more))
	require.False(t, ok)
	require.Equal(t, "Infeasible", reason)
	ok, _, _ = l.Resizable(asking("a", requests("cpu", "2")))
	require.True(t, ok, "CPU has nothing to do with swap")
	s := asking("a", more)
	s.Spec.Pod.Spec.Containers[0].ResizePolicy = []v1.ContainerResizePolicy{{ResourceName: v1.ResourceMemory, RestartPolicy: v1.RestartContainer}}
	ok, _, _ = l.Resizable(s)
	require.True(t, ok, "it is started anew")
}
