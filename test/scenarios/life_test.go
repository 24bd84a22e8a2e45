package scenarios_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/cri/crisim"
)

func TestInitContainersRunOneAfterTheOther(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", initContainer("i1"), initContainer("i2"), container("app", "app:1"),
			does(`{"i1":{"exit":{"after":"2s"}},"i2":{"exit":{"after":"3s"}}}`)))
		n.untilRuns(10*time.Second, "s", "app")
		first := n.starts("s", "i1")[0]
		require.Equal(n, []time.Duration{first + 2*time.Second}, n.starts("s", "i2"))
		require.Equal(n, []time.Duration{first + 5*time.Second}, n.starts("s", "app"))
	})
}

func TestInitContainerThatFails(t *testing.T) {
	for _, c := range []struct {
		policy v1.RestartPolicy
		runs   int
		phase  v1.PodPhase
	}{
		{v1.RestartPolicyAlways, 3, v1.PodRunning}, {v1.RestartPolicyOnFailure, 3, v1.PodRunning}, {v1.RestartPolicyNever, 1, v1.PodFailed},
	} {
		t.Run(string(c.policy), func(t *testing.T) {
			scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
				n.write("s", manifest("s", restart(c.policy), initContainer("init"), container("app", "app:1"),
					does(`{"init":[{"exit":{"code":1}},{"exit":{"code":1}},{"exit":{"code":0}}]}`)))
				n.pass(time.Minute)
				require.Len(n, n.starts("s", "init"), c.runs)
				require.Equal(n, c.phase, n.phase("s"))
				require.Equal(n, c.phase == v1.PodRunning, n.runs("s", "app"))
			})
		})
	}
}

func TestSidecars(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1, Latency: map[string]crisim.Latency{"StartContainer": crisim.Fixed(time.Second)}}}, func(n *node) {
		n.write("s", manifest("s", sidecar("s1"), initContainer("i"), sidecar("s2"), container("app", "app:1"),
			does(`{"i":{"exit":{"after":"2s"}},"app":{"term":{"after":"3s"}},"s2":{"term":{"after":"1s"}},"s1":{"term":{"after":"1s"}}}`)))
		n.untilRuns(20*time.Second, "s", "app", "s1", "s2")
		t0 := n.starts("s", "s1")[0]
		require.Equal(n, t0+1*time.Second, n.starts("s", "i")[0], "the next one waits until the sidecar runs")
		require.Equal(n, t0+4*time.Second, n.starts("s", "s2")[0])
		require.Equal(n, t0+5*time.Second, n.starts("s", "app")[0])

		n.die("s", "s1", 0)
		n.pass(1500 * time.Millisecond)
		require.True(n, n.runs("s", "s1", "s2", "app"), "a sidecar is restarted while the app runs")
		require.Len(n, n.starts("s", "i"), 1)
		require.Len(n, n.starts("s", "app"), 1)

		n.remove("s")
		n.until(10*time.Second, "it is gone", func() bool { return n.gone("s") })
		require.Equal(n, []string{"app", "s2", "s1"}, n.stopOrder("s"), "sidecars end last, in reverse order")
	})
}

// stopOrder names the containers in the order of their stops, each of which
// begins when the one before has ended.
func (n *node) stopOrder(name string) (order []string) {
	n.Helper()
	var end time.Time
	for _, c := range n.calls(name, "StopContainer") {
		require.False(n, c.Start.Before(end), "the stop of %s begins before the one before it has ended", c.Container)
		end = c.End
		order = append(order, c.Container)
	}
	return order
}

func TestSidecarsEndAfterAJob(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", restart(v1.RestartPolicyNever), sidecar("s1"), sidecar("s2"), container("job", "app:1"),
			does(`{"job":{"exit":{"after":"5s"}},"s2":{"term":{"after":"1s"}},"s1":{"term":{"after":"1s","code":3}}}`)))
		n.untilRuns(3*time.Second, "s", "job", "s1", "s2")
		n.pass(5500 * time.Millisecond)
		require.Equal(n, v1.PodRunning, n.phase("s"), "while a sidecar runs")
		n.until(10*time.Second, "it has succeeded", func() bool { return n.phase("s") == v1.PodSucceeded })
		require.Equal(n, []string{"s2", "s1"}, n.stopOrder("s"))
		require.Len(n, n.starts("s", "s1"), 1)
	})
}

func TestRestartPolicies(t *testing.T) {
	for _, c := range []struct {
		policy v1.RestartPolicy
		code   int
		again  bool
		phase  v1.PodPhase
	}{
		{v1.RestartPolicyAlways, 0, true, v1.PodRunning},
		{v1.RestartPolicyAlways, 1, true, v1.PodRunning},
		{v1.RestartPolicyOnFailure, 0, false, v1.PodSucceeded},
		{v1.RestartPolicyOnFailure, 1, true, v1.PodRunning},
		{v1.RestartPolicyNever, 0, false, v1.PodSucceeded},
		{v1.RestartPolicyNever, 1, false, v1.PodFailed},
	} {
		t.Run(fmt.Sprint(c.policy, " exit ", c.code), func(t *testing.T) {
			scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
				n.write("s", manifest("s", restart(c.policy), does(fmt.Sprintf(`{"web":[{"exit":{"after":"2s","code":%d}},{}]}`, c.code))))
				n.untilRuns(3*time.Second, "s", "web")
				n.pass(3 * time.Second)
				require.Equal(n, c.again, n.runs("s", "web"))
				require.Equal(n, c.phase, n.phase("s"))
				for _, sb := range n.sim.Sandboxes() {
					require.Equal(n, c.again, sb.Status.GetState() == 0, "what is over is taken down")
				}
			})
		})
	}
}

// Of two containers only one is over: the pod goes on.
func TestOneOfTwoContainersEnds(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", restart(v1.RestartPolicyNever), container("a", "app:1"), container("b", "app:1"),
			does(`{"a":{"exit":{"after":"2s","code":1}},"b":{"exit":{"after":"20s"}}}`)))
		n.pass(10 * time.Second)
		require.Equal(n, v1.PodRunning, n.phase("s"))
		require.True(n, n.runs("s", "b"))
		n.pass(15 * time.Second)
		require.Equal(n, v1.PodFailed, n.phase("s"))
		require.Len(n, n.starts("s", "a"), 1)
		require.Len(n, n.starts("s", "b"), 1)
	})
}

// gaps are the times from one start of a container to the next.
func (n *node) gaps(name, container string) []time.Duration {
	starts := n.starts(name, container)
	var out []time.Duration
	for i := 1; i < len(starts); i++ {
		out = append(out, starts[i]-starts[i-1])
	}
	return out
}

func seconds(list ...int) []time.Duration {
	out := make([]time.Duration, len(list))
	for i, s := range list {
		out[i] = time.Duration(s) * time.Second
	}
	return out
}

func TestCrashLoopBackOffIsExact(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", does(`{"web":{"exit":{"after":"1s","code":1}}}`)))
		n.pass(25 * time.Minute)
		require.Equal(n, seconds(1, 11, 21, 41, 81, 161, 301, 301), n.gaps("s", "web")[:8])
		require.Equal(n, "CrashLoopBackOff", n.waiting("s", "web"))
		require.Equal(n, v1.PodRunning, n.phase("s"))
		require.Equal(n, 1, n.count("s", "RunPodSandbox"))
		require.LessOrEqual(n, len(n.sim.Containers()), 2, "dead ones are removed, but the newest and the one before it")
	})
}

func TestCrashLoopBackOffEndsWithALongRun(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", does(
			`{"web":[{"exit":{"after":"1s"}},{"exit":{"after":"1s"}},{"exit":{"after":"1s"}},{"exit":{"after":"601s","code":1}},{"exit":{"after":"1s"}}]}`)))
		n.pass(15 * time.Minute)
		require.Equal(n, seconds(1, 11, 21, 601, 11, 21, 41), n.gaps("s", "web")[:7])
	})
}

func TestCrashLoopBackOffSurvivesTheAgent(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", does(`{"web":{"exit":{"after":"1s","code":1}}}`)))
		for range 12 {
			n.pass(47 * time.Second)
			n.kill()
			n.pass(300 * time.Millisecond)
			n.start()
		}
		n.pass(10 * time.Minute)
		require.Equal(n, seconds(1, 11, 21, 41, 81, 161, 301, 301), n.gaps("s", "web")[:8])
	})
}

func TestGraceIsKept(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", grace(7), container("deaf", "app:1"), container("slow", "app:1"), container("quick", "app:1"),
			does(`{"deaf":{"term":{"ignore":true}},"slow":{"term":{"after":"5s"}}}`)))
		n.untilRuns(3*time.Second, "s", "deaf", "slow", "quick")
		n.remove("s")
		removed := time.Now()
		n.until(10*time.Second, "it is gone", func() bool { return n.gone("s") })
		took := map[string]time.Duration{}
		for _, c := range n.calls("s", "StopContainer") {
			require.Less(n, c.Start.Sub(removed), 200*time.Millisecond)
			took[c.Container] = c.Took().Round(time.Second)
		}
		require.Equal(n, map[string]time.Duration{"deaf": 7 * time.Second, "slow": 5 * time.Second, "quick": 0}, took)
		require.Len(n, n.calls("s", "StopContainer"), 3)
		require.Empty(n, n.stateFiles())
		require.Empty(n, n.sim.Containers())
		require.Zero(n, n.sim.AddressesInUse())
	})
}

func TestCompletedJobIsNotRunAgain(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("job", manifest("job", restart(v1.RestartPolicyOnFailure), does(`{"web":{"exit":{"after":"3s"}}}`)))
		n.until(10*time.Second, "it has succeeded", func() bool { return n.phase("job") == v1.PodSucceeded })
		n.pass(5 * time.Second)
		n.only("job", "StopPodSandbox")
		for range 2 {
			n.kill()
			n.start()
			n.pass(time.Minute)
			require.Equal(n, v1.PodSucceeded, n.phase("job"))
			n.only("job", "RunPodSandbox")
			n.only("job", "StartContainer")
			for _, sb := range n.sim.Sandboxes() { // BC-47: nor when the runtime has forgotten it
				n.sim.Forget(sb.Status.GetId())
			}
		}
		n.remove("job")
		n.until(5*time.Second, "it is gone", func() bool { return n.gone("job") })
		require.Empty(n, n.stateFiles())
	})
}

// BC-29.
func TestOneSandboxPerPodHoweverLateEventsAre(t *testing.T) {
	for name, skip := range map[string]bool{"with events": false, "lists only": true} {
		t.Run(name, func(t *testing.T) {
			scenario(t, setup{sim: crisim.Config{Images: here1}, skipEvents: skip}, func(n *node) {
				n.sim.SetEventFaults(crisim.EventFaults{Shuffle: 2 * time.Second})
				pods := map[bool]int{false: 500, true: 100}[skip]
				for i := range pods {
					n.disk.write(fmt.Sprintf("p%d.yaml", i), manifest(fmt.Sprintf("p%d", i), restart(v1.RestartPolicyOnFailure), does(`{"web":{"exit":{}}}`)))
				}
				n.pass(2 * time.Minute)
				all := n.agent.Store.All()
				require.Len(n, all, pods)
				for _, v := range all {
					require.Equal(n, v1.PodSucceeded, v.Status.Phase)
				}
				require.Equal(n, pods, n.count("", "RunPodSandbox"))
				require.Equal(n, pods, n.count("", "StartContainer"))
			})
		})
	}
}
