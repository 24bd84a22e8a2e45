package scenarios_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/dag"
)

func TestRuntimeThatIsAwayAtTheStartIsWaitedFor(t *testing.T) {
	scenario(t, setup{idle: true}, func(n *node) {
		n.sim.Down()
		n.disk.write("s.yaml", manifest("s"))
		n.start()
		n.pass(10 * time.Minute)
		require.Error(n, n.agent.Health())
		n.sim.Up()
		n.untilRuns(5*time.Second, "s", "web")
		require.NoError(n, n.agent.Health())
	})
}

func TestRuntimeGoesAwayAndComesBack(t *testing.T) {
	for name, skip := range map[string]bool{"with events": false, "lists only": true} {
		t.Run(name, func(t *testing.T) {
			scenario(t, setup{skipEvents: skip}, func(n *node) {
				n.write("s", manifest("s", container("a", "app:1"), container("b", "app:1")))
				n.untilRuns(3*time.Second, "s", "a", "b")
				n.pass(5 * time.Second)
				n.sim.Down()
				n.die("s", "a", 1)
				n.write("new", manifest("new"))
				n.pass(2 * time.Minute)
				require.Equal(n, v1.PodRunning, n.phase("s"), "nobody knows better")
				n.sim.Up()
				n.until(5*time.Second, "what ended is started again", func() bool { return n.runs("s", "a") && n.runs("new", "web") })
				require.Len(n, n.starts("s", "b"), 1)
				require.Zero(n, n.count("s", "StopContainer"))
			})
		})
	}
}

func TestRuntimeRestartsAreHarmless(t *testing.T) {
	scenario(t, setup{}, func(n *node) {
		n.write("s", manifest("s"))
		n.untilRuns(3*time.Second, "s", "web")
		writes := n.count("", writeMethods()...)
		for range 20 {
			n.pass(7 * time.Second)
			n.sim.Restart()
		}
		n.pass(time.Minute)
		require.Equal(n, writes, n.count("", writeMethods()...))
		n.die("s", "web", 1)
		n.untilRuns(time.Second, "s", "web")
	})
}

func TestRebootBringsEverythingBack(t *testing.T) {
	scenario(t, setup{}, func(n *node) {
		n.write("s", manifest("s", initContainer("i"), sidecar("log"), container("a", "app:1"), does(`{"i":{"exit":{"after":"1s"}}}`)))
		n.write("job", manifest("job", restart(v1.RestartPolicyNever), does(`{"web":{"exit":{"after":"1s"}}}`)))
		n.untilRuns(3*time.Second, "s", "a", "log")
		n.pass(10 * time.Second)
		n.kill()
		n.sim.Reboot()
		n.start()
		n.until(20*time.Second, "it runs again", func() bool { return n.runs("s", "a", "log") && len(n.starts("s", "a")) == 2 })
		require.Len(n, n.starts("s", "i"), 2)
		require.Equal(n, 2, n.count("s", "RunPodSandbox"))
		require.Equal(n, v1.PodSucceeded, n.phase("job"))
		require.Len(n, n.starts("job", "web"), 1)
	})
}

// However events come, the end is the same.
func TestEventsInEveryCondition(t *testing.T) {
	half := 0
	for name, f := range map[string]crisim.EventFaults{
		"all in order": {},
		"late":         {Delay: 3 * time.Second},
		"shuffled":     {Shuffle: 5 * time.Second},
		"repeated":     {Repeat: 3, Shuffle: time.Second},
		"none":         {Drop: true},
		"half of them": {Drop: true, Match: func(*runtimeapi.ContainerEventResponse) bool { half++; return half%2 == 0 }},
	} {
		for _, skip := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", lists only ", skip), func(t *testing.T) {
				scenario(t, setup{skipEvents: skip}, func(n *node) {
					n.sim.SetEventFaults(f)
					n.write("job", manifest("job", restart(v1.RestartPolicyOnFailure), sidecar("log"), initContainer("i"),
						does(`{"i":{"exit":{"after":"1s"}},"web":[{"exit":{"after":"2s","code":1}},{"exit":{"after":"2s"}}]}`)))
					n.write("web", manifest("web", container("a", "app:1"), container("b", "app:1"), does(`{"a":[{"exit":{"after":"20s"}},{}]}`)))
					n.write("leaves", manifest("leaves"))
					n.pass(time.Minute)
					n.remove("leaves")
					n.pass(4 * time.Minute)
					require.Equal(n, v1.PodSucceeded, n.phase("job"))
					require.Len(n, n.starts("job", "i"), 1)
					require.Len(n, n.starts("job", "web"), 2)
					require.Equal(n, v1.PodRunning, n.phase("web"))
					require.True(n, n.runs("web", "a", "b"))
					require.Len(n, n.starts("web", "a"), 2)
					require.Len(n, n.starts("web", "b"), 1)
					require.True(n, n.gone("leaves"))
					for _, name := range []string{"job", "web", "leaves"} {
						n.only(name, "RunPodSandbox")
					}
				})
			})
		}
	}
}

func TestSandboxThatDiesIsReplaced(t *testing.T) {
	scenario(t, setup{}, func(n *node) {
		n.write("s", manifest("s", initContainer("i"), container("a", "app:1"), does(`{"i":{"exit":{"after":"1s"}}}`)))
		n.untilRuns(5*time.Second, "s", "a")
		n.pass(5 * time.Second)
		old := n.sandbox("s")
		require.NoError(n, n.sim.KillSandbox(old))
		n.until(5*time.Second, "it runs in another sandbox", func() bool { return n.runs("s", "a") && len(n.starts("s", "a")) == 2 })
		require.NotEqual(n, old, n.sandbox("s"))
		require.Len(n, n.starts("s", "i"), 2)
		stop := n.only("s", "StopContainer")
		require.False(n, n.calls("s", "RunPodSandbox")[1].Start.Before(stop.End), "all containers stop first")
		n.only("s", "StopPodSandbox")
		n.pass(time.Minute)
		require.Equal(n, 2, n.count("s", "RunPodSandbox"))
	})
}

func TestContainerThatVanishesIsStartedAgain(t *testing.T) {
	for name, skip := range map[string]bool{"with events": false, "lists only": true} {
		t.Run(name, func(t *testing.T) {
			scenario(t, setup{skipEvents: skip}, func(n *node) {
				n.write("s", manifest("s", container("a", "app:1"), container("b", "app:1")))
				n.untilRuns(5*time.Second, "s", "a", "b")
				n.pass(5 * time.Second)
				c, _ := n.find("s", "a")
				n.sim.Forget(c.Status.GetId())
				n.until(35*time.Second, "it runs again", func() bool { return n.runs("s", "a") })
				require.Len(n, n.starts("s", "b"), 1)
				v, _ := n.view("s")
				require.Equal(n, int32(1), v.Status.ContainerStatuses[0].RestartCount)
			})
		})
	}
}

func TestPodThatVanishesIsMadeAgain(t *testing.T) {
	scenario(t, setup{}, func(n *node) {
		n.write("s", manifest("s"))
		n.untilRuns(5*time.Second, "s", "web")
		n.pass(5 * time.Second)
		n.sim.Forget(n.sandbox("s"))
		n.untilRuns(35*time.Second, "s", "web")
	})
}

// A call that does not return at its deadline keeps its object and nothing else.
func TestCallsThatNeverReturnAreLost(t *testing.T) {
	for _, method := range []string{"RunPodSandbox", "CreateContainer", "StartContainer", "PullImage", "ImageStatus"} {
		t.Run(method, func(t *testing.T) {
			scenario(t, setup{}, func(n *node) {
				n.write("first", manifest("first"))
				n.untilRuns(5*time.Second, "first", "web")
				n.agent.line.stick(method, true)
				n.write("bad", manifest("bad", container("web", "app:2")))
				n.pass(time.Second)
				n.agent.line.stick(method, false)
				n.write("good", manifest("good"))
				n.untilRuns(2*time.Second, "good", "web")
				n.pass(2 * time.Hour)
				lost := 0
				v, _ := n.view("bad")
				for _, e := range n.agent.Engine.Memo(v.Key) {
					if e.State == dag.Lost {
						lost++
					}
				}
				require.Equal(n, 1, lost)
				require.Zero(n, n.count("bad", method), "no second attempt runs beside it")
				require.False(n, n.runs("bad", "web"))
				n.die("first", "web", 1)
				n.untilRuns(2*time.Second, "first", "web")
				n.kill() // the next agent knows nothing of it
				n.start()
				n.untilRuns(10*time.Second, "bad", "web")
			})
		})
	}
}

// While the runtime cannot stop one container, others are stopped.
func TestContainerThatCannotBeKilled(t *testing.T) {
	scenario(t, setup{}, func(n *node) {
		n.write("zombie", manifest("zombie", grace(5), does(`{"web":{"term":{"ignore":true},"kill":{"ignore":true}}}`)))
		n.write("s", manifest("s"))
		n.untilRuns(5*time.Second, "s", "web")
		n.untilRuns(5*time.Second, "zombie", "web")
		n.remove("zombie")
		n.pass(10 * time.Second)
		n.remove("s")
		n.pass(2 * time.Second)
		require.True(n, n.gone("s"))
		n.pass(time.Hour)
		require.False(n, n.gone("zombie"))
		c, ok := n.find("zombie", "web")
		require.True(n, ok)
		require.NoError(n, n.sim.Kill(c.Status.GetId(), crisim.Exit{Code: 137}))
		n.until(3*time.Minute, "it is gone", func() bool { return n.gone("zombie") })
	})
}

func TestShutdownTouchesNoContainer(t *testing.T) {
	scenario(t, setup{}, func(n *node) {
		n.write("s", manifest("s"))
		n.untilRuns(5*time.Second, "s", "web")
		began := time.Now()
		n.shutDown()
		require.Zero(n, time.Since(began))
		n.pass(time.Minute)
		require.True(n, n.runs("s", "web"))
		require.Zero(n, n.count("s", "StopContainer"))
	})
}

// Old events are replayed to an agent that starts. A look that one of them asks
// for hangs: the pod that it is about still holds its name.
func TestLookThatHangsAtTheStart(t *testing.T) {
	scenario(t, setup{}, func(n *node) {
		with := func(v string) string {
			return manifest("s", grace(2), container("a", "app:1", args(v)), container("b", "app:1"), does(`{"a":{"term":{"ignore":true}}}`))
		}
		n.write("s", with("v1"))
		n.untilRuns(3*time.Second, "s", "a", "b")
		n.pass(time.Second)
		n.kill()
		n.die("s", "b", 1)
		n.disk.write("s.yaml", with("v2"))
		n.pass(time.Second)
		n.sim.Inject(crisim.Fault{Method: "ListPodSandbox", Count: 1, Do: crisim.Hang()})
		n.sim.SetLatency("StreamContainers", crisim.Fixed(100*time.Millisecond)) // the list ends after the look began
		n.start()
		n.until(time.Minute, "the new one runs", func() bool { return len(n.starts("s", "a")) == 2 })
		n.pass(time.Minute)
		require.True(n, n.runs("s", "a", "b"))
		require.Len(n, n.sim.Sandboxes(), 1)
	})
}
