package scenarios_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/cri/crisim"
)

func TestOneContainerCostsSixCalls(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: map[string]crisim.Image{"app:1": {Present: true}}}}, func(n *node) {
		n.pass(2 * time.Second)
		n.write("web", manifest("web"))
		n.untilRuns(time.Second, "web", "web")
		n.pass(time.Second)
		for _, m := range []string{"RunPodSandbox", "PodSandboxStatus", "CreateContainer", "StartContainer", "ContainerStatus"} {
			require.Equal(t, 1, n.count("web", m), m)
		}
		require.Equal(t, 1, n.count("", "ImageStatus"))
		require.Zero(t, n.count("", "PullImage"))
	})
}
