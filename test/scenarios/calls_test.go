package scenarios_test

import (
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/dag"
)

// calls are the calls of some methods for one pod, by its name in the manifest;
// "" is all pods.
func (n *node) calls(name string, methods ...string) []crisim.Call {
	return n.sim.Calls(func(c crisim.Call) bool {
		return (name == "" || c.Pod == name || c.Pod == name+"-n1") && crisim.Method(methods...)(c)
	})
}

func (n *node) count(name string, methods ...string) int { return len(n.calls(name, methods...)) }

// writeMethods are those that change something in the runtime.
func writeMethods() []string {
	return []string{
		"RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "CreateContainer", "StartContainer", "StopContainer",
		"RemoveContainer", "UpdateContainerResources", "UpdatePodSandboxResources", "PullImage", "RemoveImage",
	}
}

// starts are the times of StartContainer for one container, since the scenario began.
func (n *node) starts(name, container string) []time.Duration {
	var out []time.Duration
	for _, c := range n.calls(name, "StartContainer") {
		if c.Container == container {
			out = append(out, n.at(c.Start))
		}
	}
	return out
}

// only returns the one call there is.
func (n *node) only(name, method string) crisim.Call {
	n.Helper()
	calls := n.calls(name, method)
	if len(calls) != 1 {
		n.dump()
	}
	require.Len(n, calls, 1, method)
	return calls[0]
}

// find is the newest container of that name, as the runtime has it.
func (n *node) find(name, container string) (crisim.Container, bool) {
	if c, ok := n.sim.Find(name+"-n1", container); ok {
		return c, true
	}
	return n.sim.Find(name, container)
}

// runs reports whether the newest container of that name runs.
func (n *node) runs(name string, containers ...string) bool {
	for _, container := range containers {
		c, ok := n.find(name, container)
		if !ok || c.Status.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
			return false
		}
	}
	return true
}

func (n *node) untilRuns(most time.Duration, name string, containers ...string) {
	n.Helper()
	n.until(most, name+" runs", func() bool { return n.runs(name, containers...) })
	n.settle()
}

// die ends a container's process from outside.
func (n *node) die(name, container string, code int32) {
	n.Helper()
	c, ok := n.find(name, container)
	require.True(n, ok)
	require.NoError(n, n.sim.Kill(c.Status.GetId(), crisim.Exit{Code: code}))
	n.settle()
}

// sandbox is the ID of the pod's only ready sandbox.
func (n *node) sandbox(name string) string {
	n.Helper()
	var ids []string
	for _, sb := range n.sim.Sandboxes() {
		m := sb.Status.GetMetadata().GetName()
		if (m == name || m == name+"-n1") && sb.Status.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY {
			ids = append(ids, sb.Status.GetId())
		}
	}
	require.Len(n, ids, 1)
	return ids[0]
}

// stage is the ID of a stage; of is what it is about, if anything.
func stage(kind string, of ...string) dag.ID {
	id := dag.ID{Kind: kind}
	if len(of) > 0 {
		id.Of = of[0]
	}
	return id
}
