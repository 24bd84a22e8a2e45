package scenarios_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/internal/pod"
)

// Many exec probes share a few slots. The time that they wait for one is not
// the containers' fault.
func TestProbesThatWaitForASlotDoNotFail(t *testing.T) {
	pods := number("SCENARIO_PODS", 100)
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		for i := range pods {
			n.disk.write(fmt.Sprintf("p%d.yaml", i), manifest(fmt.Sprintf("p%d", i), container("app", "app:1", func(c *v1.Container) {
				c.LivenessProbe = check("alive") // one failure is enough
			}), does(`{"app":{"exec":[{"after":"800ms"}]}}`)))
		}
		n.settle()
		n.pass(time.Minute)
		most := 0
		for _, c := range n.calls("", "ExecSync") {
			most = max(most, c.InFlight)
		}
		require.Equal(n, 8, most, "as many as there are slots, and no more")
		require.Zero(n, n.count("", "StopContainer"))
		require.Equal(n, pods, n.count("", "StartContainer"))
		require.Greater(n, n.count("", "ExecSync"), 8*60)
	})
}

// Pods that end at once are over as soon as they have ended.
func TestShortPodsAreOverAtOnce(t *testing.T) {
	pods := number("SCENARIO_PODS", 100)
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		for i := range pods {
			n.disk.write(fmt.Sprintf("p%d.yaml", i), manifest(fmt.Sprintf("p%d", i), restart(v1.RestartPolicyNever), does(`{"web":{"exit":{"after":"1s"}}}`)))
		}
		n.settle()
		for range 200 {
			n.pass(10 * time.Millisecond)
			for _, c := range n.sim.Containers() {
				if at := time.Unix(0, c.Status.GetFinishedAt()); c.Status.GetFinishedAt() > 0 && time.Since(at) > 200*time.Millisecond {
					require.Equal(n, v1.PodSucceeded, n.phase(c.Pod.GetName()), "%s after its end", time.Since(at))
				}
			}
		}
		require.Equal(n, pods, n.count("", "RunPodSandbox"))
	})
}

// BC-39: what thousands of pods left behind is removed, and those that run are
// served meanwhile.
func TestThousandsOfDeadContainers(t *testing.T) {
	dead := number("SCENARIO_DEAD", 2000)
	const perPod = 10
	scenario(t, setup{idle: true, sim: crisim.Config{Images: here1, Latency: map[string]crisim.Latency{
		"RemoveContainer": crisim.Fixed(20 * time.Millisecond), "RemovePodSandbox": crisim.Fixed(20 * time.Millisecond),
	}}}, func(n *node) {
		for i := range dead / perPod {
			n.leftOver(fmt.Sprint("old", i), perPod)
		}
		n.sim.ForgetCalls()
		n.disk.write("s.yaml", manifest("s", does(`{"web":[{"exit":{"after":"2s"}},{}]}`)))
		n.start()
		n.untilRuns(2*time.Second, "s", "web")
		n.pass(2100 * time.Millisecond)
		require.Len(n, n.starts("s", "web"), 2, "its end was seen at once")
		n.until(5*time.Minute, "all that is dead is gone", func() bool { return len(n.sim.Sandboxes()) == 1 && len(n.sim.Containers()) <= 2 })
		most := 0
		for _, c := range n.calls("", "RemoveContainer", "RemovePodSandbox") {
			most = max(most, c.InFlight)
		}
		require.LessOrEqual(n, most, 32, "they are removed in a bounded number at a time")
		require.Len(n, n.agent.Store.All(), 1)
	})
}

// leftOver makes a pod of another agent that ended long ago: its sandbox is
// stopped and all its containers are dead.
func (n *node) leftOver(name string, containers int) {
	n.Helper()
	ctx, client := context.Background(), n.client()
	labels := map[string]string{pod.LabelPodName: name, pod.LabelPodNamespace: "default", pod.LabelPodUID: "uid-" + name}
	config := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "uid-" + name},
		Labels:   labels, Annotations: map[string]string{pod.AnnotationSource: "file"},
	}
	sandbox, err := client.RunPodSandbox(ctx, config, "")
	require.NoError(n, err)
	for i := range containers {
		of := map[string]string{pod.LabelContainerName: "web"}
		for k, v := range labels {
			of[k] = v
		}
		id, err := client.CreateContainer(ctx, sandbox, &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "web", Attempt: uint32(i)}, Image: &runtimeapi.ImageSpec{Image: "app:1"}, Labels: of,
		}, config)
		require.NoError(n, err)
		require.NoError(n, client.StartContainer(ctx, id))
		require.NoError(n, n.sim.Kill(id, crisim.Exit{Code: 1}))
	}
	require.NoError(n, client.StopPodSandbox(ctx, sandbox))
}
