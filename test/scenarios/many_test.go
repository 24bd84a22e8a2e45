package scenarios_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/cri/crisim"
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
