package scenarios_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/cri/crisim"
)

// One call of each method goes wrong, in each way, at each place in a pod's
// start and end. It always comes to the same: everything is made once, runs,
// and leaves nothing behind.
func TestOneCallGoesWrong(t *testing.T) {
	methods := []string{
		"RunPodSandbox", "PodSandboxStatus", "ImageStatus", "PullImage", "CreateContainer", "StartContainer", "ContainerStatus",
		"StopContainer", "StopPodSandbox", "RemoveContainer", "RemovePodSandbox",
		"ListPodSandbox", "ListContainers", "StreamPodSandboxes", "StreamContainers", "Status", "GetContainerEvents",
	}
	ways := map[string]crisim.Action{
		"fails":            crisim.Fail(codes.Unknown, "something is wrong"),
		"fails but did it": crisim.FailAfter(codes.Unknown, "something is wrong"),
		"hangs":            crisim.Hang(),
		"loses its reply":  crisim.LoseReply(),
		"comes late":       crisim.Late(5 * time.Minute),
		"is unavailable":   crisim.Fail(codes.Unavailable, "try again"),
	}
	for _, method := range methods {
		places := 8
		if slices.Contains(methods[11:], method) {
			places = 2 // they come all the time
		}
		for way, do := range ways {
			t.Run(method+" "+way, func(t *testing.T) {
				t.Parallel()
				for skip := range places {
					hit := false
					scenario(t, setup{sim: crisim.Config{Latency: someLatency()}}, func(n *node) {
						f := n.sim.Inject(crisim.Fault{Method: method, Skip: skip, Count: 1, Do: do})
						wrong(n, fmt.Sprintf("%s %s after %d", method, way, skip), method, way)
						hit = f.Hits() > 0
					})
					if !hit {
						return
					}
				}
			})
		}
	}
}

// someLatency makes calls overlap.
func someLatency() map[string]crisim.Latency {
	out := map[string]crisim.Latency{}
	for _, m := range writeMethods() {
		out[m] = crisim.Fixed(20 * time.Millisecond)
	}
	return out
}

func wrong(n *node, what, method, way string) {
	n.write("s", manifest("s", grace(2), sidecar("log"), initContainer("i"), container("a", "app:1"), container("b", "app:2"),
		does(`{"i":{"exit":{"after":"1s"}}}`)))
	n.pass(time.Second)
	n.until(70*time.Minute, what+": it runs", func() bool { return n.runs("s", "log", "a", "b") && n.phase("s") == v1.PodRunning })
	after := time.Minute
	if way == "comes late" {
		after = 6 * time.Minute
	}
	n.pass(after)
	require.True(n, n.runs("s", "log", "a", "b"), what)
	n.sandbox("s")
	// A start that its caller gives up ends the container: it is made again.
	// So is one whose start comes to nothing at the end of its deadline.
	made := map[string]int{"RunPodSandbox": 1, "CreateContainer": 4}
	if method == "StartContainer" && (way == "hangs" || way == "comes late") {
		made["CreateContainer"] = 5
	}
	for m, most := range made {
		done := 0
		for _, c := range n.calls("s", m) {
			if c.Code == codes.OK || (m == method && way != "fails" && way != "hangs" && way != "is unavailable" && c.Err != "" && c.Code != codes.FailedPrecondition) {
				done++
			}
		}
		if done > most {
			n.dump()
		}
		require.LessOrEqual(n, done, most, "%s: %s", what, m)
	}
	n.remove("s")
	n.until(20*time.Minute, what+": it is gone", func() bool { return n.gone("s") })
	n.pass(after)
	require.Empty(n, n.sim.Sandboxes(), what)
	require.Empty(n, n.sim.Containers(), what)
	require.Empty(n, n.stateFiles(), what)
	require.Empty(n, n.agent.Store.All(), what)
}
