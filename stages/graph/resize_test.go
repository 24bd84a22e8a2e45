package graph_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/graph"
)

func cpus(n string, policy ...v1.ContainerResizePolicy) func(*v1.PodSpec) {
	return func(s *v1.PodSpec) {
		s.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(n)}
		s.Containers[0].ResizePolicy = policy
	}
}

func asks(p *v1.Pod) pod.Change {
	return pod.SpecSet{Spec: &pod.Spec{Pod: p, Source: pod.SourceFile, Seen: now}}
}

func TestResizeIsAllocatedAndThenCarriedOut(t *testing.T) {
	small, large := aPod(cpus("1")), aPod(cpus("2"))
	s := fold(small, admitted, sandbox(true), container("c", 0, nil))
	require.NotContains(t, look(s, world{}), "resize")

	s, _ = pod.Fold(s, asks(large))
	got := look(s, world{})
	require.Equal(t, "waiting: allocate what the changed spec asks for", got["resize"], "for the state file")
	require.Empty(t, node(t, s, "resize", "").Hold.Why)
	require.NotContains(t, got, "stop[c]")
	require.NotContains(t, got, "container[c]")
	g := graph.Build(graph.In{Now: now, State: s, World: world{noResize: "Deferred"}, Config: config()}, nil)
	for _, n := range g.Nodes() {
		if n.ID.Kind == "resize" {
			require.Equal(t, "Deferred: because", n.Hold.Why)
		}
	}

	s, _ = pod.Fold(s, pod.Resized{Asked: large, At: now})
	require.Contains(t, look(s, world{})["resize"], "resize to what was allocated")
	s, _ = pod.Fold(s, pod.Actuated{At: now, Name: "c", ID: "c-0"})
	require.Contains(t, look(s, world{})["resize"], "resize to what was allocated", "the pod's cgroup is left")
	s, _ = pod.Fold(s, pod.Actuated{At: now})
	require.NotContains(t, look(s, world{}), "resize")
}

func TestContainerThatMustRestartToBeResizedIsStopped(t *testing.T) {
	policy := v1.ContainerResizePolicy{ResourceName: v1.ResourceCPU, RestartPolicy: v1.RestartContainer}
	large := aPod(cpus("2", policy))
	s := fold(aPod(cpus("1", policy)), admitted, sandbox(true), container("c", 0, nil), asks(large), pod.Resized{Asked: large, At: now})
	got := look(s, world{})
	require.Contains(t, got["stop[c]"], "Container c resize requires restart")
	require.Equal(t, "waiting: start attempt 1", got["container[c]"])
	s, _ = pod.Fold(s, pod.Actuated{At: now})
	require.NotContains(t, look(s, world{}), "resize", "only the restart is left")

	s, _ = pod.Fold(s, container("c", 0, exited(137)))
	require.Nil(t, s.Resize)
	require.Contains(t, look(s, world{})["container[c]"], "start attempt 1")
}

func TestResizeComesAfterTheStateFile(t *testing.T) {
	s := fold(aPod(cpus("1")), admitted, sandbox(true), container("c", 0, nil), asks(aPod(cpus("2"))))
	n := node(t, s, "resize", "")
	require.Contains(t, n.After, node(t, s, "record", "").ID)
	require.True(t, node(t, s, "record", "").Hold.Until.Before(now.Add(time.Nanosecond)), "which is written at once")
}
