package scenarios_test

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/cri/crisim"
)

var here1 = map[string]crisim.Image{"app:1": {Present: true}}

func TestOneContainerCostsSixCalls(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.pass(2 * time.Second)
		n.write("web", manifest("web"))
		n.untilRuns(time.Second, "web", "web")
		n.pass(time.Second)
		for _, m := range []string{"RunPodSandbox", "PodSandboxStatus", "CreateContainer", "StartContainer", "ContainerStatus"} {
			require.Equal(n, 1, n.count("web", m), m)
		}
		require.Equal(n, 1, n.count("", "ImageStatus"))
		require.Zero(n, n.count("", "PullImage"))
	})
}

func TestPullsOfOnePodRunSideBySide(t *testing.T) {
	images := map[string]crisim.Image{}
	for i := range 3 {
		images[fmt.Sprintf("app:%d", i)] = crisim.Image{Pull: 3 * time.Second}
	}
	scenario(t, setup{sim: crisim.Config{Images: images}}, func(n *node) {
		n.pass(2 * time.Second)
		n.write("web", manifest("web", container("a", "app:0"), container("b", "app:1"), container("c", "app:2")))
		n.untilRuns(5*time.Second, "web", "a", "b", "c")
		pulls := n.calls("", "PullImage")
		require.Len(n, pulls, 3)
		for _, p := range pulls {
			require.Equal(n, pulls[0].Start, p.Start)
		}
		starts := n.calls("web", "StartContainer")
		require.Len(n, starts, 3)
		for _, s := range starts {
			require.Equal(n, 3*time.Second, s.Start.Sub(pulls[0].Start))
		}
	})
}

func TestStartTakesTheLongestPathNotTheSum(t *testing.T) {
	s := setup{
		volumes: &volumes{takes: map[string]time.Duration{"data": 5 * time.Second}},
		sim: crisim.Config{
			Images:  map[string]crisim.Image{"app:1": {Pull: 6 * time.Second}},
			Latency: map[string]crisim.Latency{"RunPodSandbox": crisim.Fixed(4 * time.Second)},
		},
	}
	scenario(t, s, func(n *node) {
		n.pass(2 * time.Second)
		n.write("web", manifest("web", emptyDir("data"), container("web", "app:1", mount("data"))))
		n.untilRuns(10*time.Second, "web", "web")
		pull, sandbox := n.only("", "PullImage"), n.only("web", "RunPodSandbox")
		require.Equal(n, pull.Start, sandbox.Start)
		require.Equal(n, 6*time.Second, n.only("web", "CreateContainer").Start.Sub(pull.Start))
	})
}

func TestContainersWaitForTheirOwnVolumesOnly(t *testing.T) {
	s := setup{volumes: &volumes{takes: map[string]time.Duration{"slow": 30 * time.Second}}, sim: crisim.Config{Images: here1}}
	scenario(t, s, func(n *node) {
		n.write("web", manifest("web", emptyDir("slow"), container("a", "app:1"), container("b", "app:1", mount("slow"))))
		n.untilRuns(2*time.Second, "web", "a")
		require.False(n, n.runs("web", "b"))
		n.untilRuns(31*time.Second, "web", "b")
	})
}

func TestUnchangedPodCostsNothing(t *testing.T) {
	for name, skipEvents := range map[string]bool{"with events": false, "lists only": true} {
		t.Run(name, func(t *testing.T) {
			scenario(t, setup{sim: crisim.Config{Images: here1}, skipEvents: skipEvents}, func(n *node) {
				n.write("web", manifest("web", container("a", "app:1"), container("b", "app:1"), sidecar("log")))
				n.untilRuns(3*time.Second, "web", "a", "b", "log")
				n.pass(5 * time.Second)
				writes, runs, files := n.count("", writeMethods()...), n.moves.total(), n.inodes()
				require.Len(n, files, 1)
				n.disk.write("web.yaml", manifest("web", container("a", "app:1"), container("b", "app:1"), sidecar("log")))
				n.pass(10 * time.Minute)
				require.Equal(n, writes, n.count("", writeMethods()...))
				require.Equal(n, runs, n.moves.total(), n.moves.list())
				require.Equal(n, files, n.inodes())
			})
		})
	}
}

// inodes of the state files: a file that is written is another one.
func (n *node) inodes() map[string]uint64 {
	out := map[string]uint64{}
	for _, path := range n.stateFiles() {
		info, err := os.Stat(path)
		require.NoError(n, err)
		out[path] = info.Sys().(*syscall.Stat_t).Ino
	}
	return out
}

func TestIdlePodsOwnNoGoroutine(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.pass(5 * time.Second)
		before := runtime.NumGoroutine()
		for i := range 500 {
			n.disk.write(fmt.Sprintf("p%d.yaml", i), manifest(fmt.Sprintf("p%d", i)))
		}
		n.pass(time.Minute)
		require.Equal(n, 500, n.count("", "StartContainer"))
		for _, v := range n.agent.Store.All() {
			require.Equal(n, v1.PodRunning, v.Status.Phase)
		}
		require.LessOrEqual(n, runtime.NumGoroutine(), before)
	})
}
