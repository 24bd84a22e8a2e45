package scenarios_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/internal/config"
	"github.com/flowlet/flowlet/internal/pod"
)

// deadPod makes a pod in the runtime that a source had, with containers that exited.
func (n *node) deadPod(source, name string, containers int) {
	n.Helper()
	ctx, client := context.Background(), n.client()
	labels := map[string]string{pod.LabelPodName: name, pod.LabelPodNamespace: "default", pod.LabelPodUID: "uid-" + name, pod.LabelContainerName: "web"}
	config := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "uid-" + name},
		Labels:   labels, Annotations: map[string]string{pod.AnnotationSource: source},
	}
	sandbox, err := client.RunPodSandbox(ctx, config, "")
	require.NoError(n, err)
	for i := range containers {
		id, err := client.CreateContainer(ctx, sandbox, &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "web", Attempt: uint32(i)}, Image: &runtimeapi.ImageSpec{Image: "app:1"}, Labels: labels,
		}, config)
		require.NoError(n, err)
		require.NoError(n, client.StartContainer(ctx, id))
	}
	require.NoError(n, client.StopPodSandbox(ctx, sandbox))
}

// BC-39: many dead containers (20,000 with SCENARIO_SCALE set) of pods that
// nobody wants any more neither keep the agent from starting nor pods from being
// served while they are removed, a few at a time.
func TestManyDeadContainers(t *testing.T) {
	pods, each := 50, 20
	if os.Getenv("SCENARIO_SCALE") != "" {
		pods, each = 1000, 20
	}
	s := setup{idle: true, sim: crisim.Config{Lean: true, CallLimit: 300_000}}
	scenario(t, s, func(n *node) {
		require.NoError(n, n.sim.SetImage("app:1", crisim.Image{Present: true}))
		for i := range pods {
			n.deadPod("file", fmt.Sprint("old-", i), each)
		}
		require.Len(n, n.sim.Containers(), pods*each)
		for _, method := range []string{"RemoveContainer", "StopPodSandbox", "RemovePodSandbox", "ContainerStatus"} {
			n.sim.SetLatency(method, crisim.Fixed(20*time.Millisecond))
		}
		n.sim.ForgetCalls()
		n.write("web", manifest("web", does(`{"web":[{"exit":{"after":"2s"}},{}]}`)))
		n.start()
		began := time.Now()
		n.untilRuns(10*time.Second, "web", "web")
		n.Logf("the pod runs after %s, %d dead containers are left", time.Since(began), len(n.sim.Containers())-1)
		require.Greater(n, len(n.sim.Containers()), pods*each/2, "it did not wait for their end")
		n.pass(2100 * time.Millisecond)
		require.Len(n, n.starts("web", "web"), 2, "its end was seen at once")
		n.pass(time.Hour)
		require.Len(n, n.sim.Containers(), 2, "the others are gone")
		require.LessOrEqual(n, n.atOnce("RemoveContainer"), baseConfig(n).Policy["teardown"].Slots)
		require.True(n, n.runs("web", "web"))
	})
}

// Ended containers beyond what the node may keep go, the oldest first. What a
// completed pod did is known without them, also to the next agent.
func TestDeadContainersOfANodeAreBounded(t *testing.T) {
	s := setup{sim: crisim.Config{Images: here1}, configure: func(c *config.Config) { c.Dead.OnNode = 1 }}
	scenario(t, s, func(n *node) {
		for _, name := range []string{"first", "second"} {
			n.write(name, manifest(name, restart(v1.RestartPolicyNever), container("web", "app:1"), does(`{"web":{"exit":{"after":"1s"}}}`)))
			n.pass(10 * time.Second)
		}
		n.pass(2 * time.Minute)
		_, left := n.find("first", "web")
		require.False(n, left)
		_, left = n.find("second", "web")
		require.True(n, left)
		for range 2 {
			require.Equal(n, v1.PodSucceeded, n.phase("first"))
			status, _ := n.status("first", "web")
			require.Equal(n, "Completed", status.State.Terminated.Reason)
			n.restartAgent(true)
			n.pass(2 * time.Minute)
		}
		require.Len(n, n.starts("first", "web"), 1)
		require.Len(n, n.starts("second", "web"), 1)
	})
}

// atOnce is how many calls of a method were under way together at most.
func (n *node) atOnce(method string) (most int) {
	calls := n.sim.Calls(func(c crisim.Call) bool { return c.Method == method })
	for i, c := range calls {
		together := 0
		for _, d := range calls[max(0, i-100):min(len(calls), i+100)] {
			if !d.Start.After(c.Start) && d.Start.Add(d.Took()).After(c.Start) {
				together++
			}
		}
		most = max(most, together)
	}
	return most
}
