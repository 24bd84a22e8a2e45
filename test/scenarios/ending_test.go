package scenarios_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/cri/crisim"
)

// BC-31: readiness is checked to the end, liveness is not.
func TestReadinessIsToldWhileThePodEnds(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", grace(60), container("app", "app:1", func(c *v1.Container) {
			c.ReadinessProbe, c.LivenessProbe = check("ready"), check("alive")
		}), does(`{"app":{"term":{"after":"30s"},"exec":[{"command":"ready","from":"20s","code":1},{"command":"alive","from":"20s","code":1}]}}`)))
		n.untilRuns(5*time.Second, "s", "app")
		n.pass(19900 * time.Millisecond)
		require.True(n, n.isReady("s"))
		alive := n.execsOf("s", "app", "alive")
		n.remove("s")
		n.until(3*time.Second, "it is not ready", func() bool { return !n.isReady("s") })
		n.until(40*time.Second, "it is gone", func() bool { return n.gone("s") })
		stop := n.only("s", "StopContainer")
		require.InDelta(n, 30, stop.Took().Seconds(), 0.1)
		require.Equal(n, alive, n.execsOf("s", "app", "alive"))
		require.Len(n, n.starts("s", "app"), 1)
		var last time.Time
		for _, c := range n.calls("s", "ExecSync") {
			last = c.Start
		}
		require.Less(n, stop.End.Sub(last), 2100*time.Millisecond, "readiness was checked until the end")
		require.False(n, last.After(stop.End))
	})
}

// A container whose hook failed is removed by somebody: the pod is over all the same.
func TestContainerThatVanishedEndsAPodThatIsNotRestarted(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", restart(v1.RestartPolicyNever)))
		n.untilRuns(5*time.Second, "s", "web")
		c, _ := n.find("s", "web")
		n.sim.Forget(c.Status.GetId())
		n.until(5*time.Minute, "it has failed", func() bool { return n.phase("s") == v1.PodFailed })
		require.Len(n, n.starts("s", "web"), 1)
		n.remove("s")
		n.until(5*time.Second, "it is gone", func() bool { return n.gone("s") })
	})
}

// The exit that was seen first is kept, whatever becomes of the container.
func TestExitThatWasSeenIsKept(t *testing.T) {
	for _, kill := range []bool{false, true} {
		t.Run(fmt.Sprint("with a restart ", kill), func(t *testing.T) {
			scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
				n.write("s", manifest("s", restart(v1.RestartPolicyNever), container("a", "app:1"), container("b", "app:1"),
					does(`{"a":{"exit":{"after":"2s"}}}`)))
				n.untilRuns(5*time.Second, "s", "b")
				n.pass(5 * time.Second)
				c, _ := n.find("s", "a")
				n.sim.Forget(c.Status.GetId())
				if kill {
					n.restartAgent(true)
				}
				n.pass(5 * time.Minute)
				n.die("s", "b", 0)
				n.pass(time.Minute)
				st, _ := n.status("s", "a")
				require.NotNil(n, st.State.Terminated)
				require.EqualValues(n, 0, st.State.Terminated.ExitCode)
				require.Equal(n, v1.PodSucceeded, n.phase("s"))
				require.Len(n, n.starts("s", "a"), 1)
			})
		})
	}
}

// Of a pod whose sandbox is lost, only what has not succeeded runs again.
func TestSandboxLossRunsAgainWhatThePolicySays(t *testing.T) {
	for policy, again := range map[v1.RestartPolicy]int{v1.RestartPolicyNever: 1, v1.RestartPolicyOnFailure: 2} {
		t.Run(string(policy), func(t *testing.T) {
			scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
				n.write("s", manifest("s", restart(policy), container("done", "app:1"), container("busy", "app:1"), does(`{"done":{"exit":{"after":"1s"}}}`)))
				n.untilRuns(5*time.Second, "s", "busy")
				n.pass(5 * time.Second)
				require.NoError(n, n.sim.KillSandbox(n.sandbox("s")))
				n.pass(time.Minute)
				require.Len(n, n.starts("s", "done"), 1)
				require.Len(n, n.starts("s", "busy"), again)
				require.Equal(n, again, n.count("s", "RunPodSandbox"))
				if policy == v1.RestartPolicyNever {
					require.Equal(n, v1.PodFailed, n.phase("s"))
				} else {
					require.Equal(n, v1.PodRunning, n.phase("s"))
				}
			})
		})
	}
}

// An init container that was killed for memory has failed, whatever its code.
func TestInitContainerOutOfMemoryHasFailed(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", initContainer("i"), does(`{"i":[{"exit":{"oom":true,"code":0}},{"exit":{}}]}`)))
		n.untilRuns(time.Minute, "s", "web")
		require.Len(n, n.starts("s", "i"), 2)
	})
}

// A sidecar that keeps crashing does not keep a job from completing.
func TestSidecarThatCrashesWhenTheJobIsDone(t *testing.T) {
	for _, at := range []string{"3s", "3010ms", "2500ms", "100ms"} {
		t.Run(at, func(t *testing.T) {
			scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
				n.write("s", manifest("s", restart(v1.RestartPolicyNever), sidecar("log"), container("job", "app:1"),
					does(fmt.Sprintf(`{"job":{"exit":{"after":"3s"}},"log":{"exit":{"after":%q,"code":1}}}`, at))))
				n.until(30*time.Second, "it has succeeded", func() bool { return n.phase("s") == v1.PodSucceeded })
				starts := len(n.starts("s", "log"))
				n.pass(10 * time.Minute)
				require.Len(n, n.starts("s", "log"), starts)
			})
		})
	}
}

// A sidecar's startup holds up what follows; its readiness only the pod's.
func TestWhatASidecarHoldsUp(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", initContainer("log", func(c *v1.Container) {
			c.RestartPolicy = &always
			c.StartupProbe, c.ReadinessProbe = check("up", manyFailures), check("ready")
		}), initContainer("i"), does(`{"i":{"exit":{}},"log":{"exec":[{"command":"up","until":"10s","code":1},{"command":"ready","until":"30s","code":1}]}}`)))
		n.untilRuns(5*time.Second, "s", "log")
		n.pass(9 * time.Second)
		require.Empty(n, n.starts("s", "i"))
		n.untilRuns(5*time.Second, "s", "web")
		n.pass(5 * time.Second)
		require.False(n, n.isReady("s"))
		n.until(20*time.Second, "it is ready", func() bool { return n.isReady("s") })
	})
}

// What has ended by itself has nothing to prepare for.
func TestPreStopOfAContainerThatEndedIsNotRun(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", container("a", "app:1", preStop), container("b", "app:1", preStop),
			does(`{"a":{"exit":{"after":"2s","code":1}}}`)))
		n.untilRuns(5*time.Second, "s", "b")
		n.pass(35 * time.Second) // a waits for the end of its back-off
		require.Zero(n, n.execsOf("s", "a", "drain"))
		require.False(n, n.runs("s", "a"))
		n.remove("s")
		n.until(5*time.Second, "it is gone", func() bool { return n.gone("s") })
		require.Zero(n, n.execsOf("s", "a", "drain"))
		require.Equal(n, 1, n.execsOf("s", "b", "drain"))
	})
}

// A pod is removed while its postStart hook runs: nobody waits for that.
func TestRemovalDoesNotWaitForAPostStartHook(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", grace(5), container("web", "app:1", postStart), does(`{"web":{"exec":[{"command":"hello","after":"9999s"}]}}`)))
		n.untilRuns(5*time.Second, "s", "web")
		n.pass(time.Minute)
		require.Equal(n, 1, n.count("s", "ExecSync"))
		n.remove("s")
		n.until(6*time.Second, "it is gone", func() bool { return n.gone("s") })
	})
}

// The grace of a probe holds for the stop that it caused, and for no other.
func TestGraceOfAProbe(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		three := int64(3)
		n.write("s", manifest("s", grace(50), container("app", "app:1", func(c *v1.Container) {
			c.LivenessProbe = check("alive", func(p *v1.Probe) { p.TerminationGracePeriodSeconds = &three })
		}), does(`{"app":[{"term":{"ignore":true},"exec":[{"command":"alive","from":"10s","code":1}]},{"term":{"ignore":true}}]}`)))
		n.untilRuns(5*time.Second, "s", "app")
		n.until(time.Minute, "it was restarted", func() bool { return len(n.starts("s", "app")) == 2 })
		require.InDelta(n, 3, n.only("s", "StopContainer").Took().Seconds(), 0.2)
		n.pass(5 * time.Second)
		n.remove("s")
		n.until(time.Minute, "it is gone", func() bool { return n.gone("s") })
		require.InDelta(n, 50, n.calls("s", "StopContainer")[1].Took().Seconds(), 0.2)
	})
}

// A hook that sleeps no time is valid; a grace of zero is one second.
func TestSmallestGraceAndHook(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", grace(0), container("web", "app:1", func(c *v1.Container) {
			c.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{}}, PostStart: &v1.LifecycleHandler{Sleep: &v1.SleepAction{}}}
		}), does(`{"web":{"term":{"ignore":true}}}`)))
		n.untilRuns(5*time.Second, "s", "web")
		n.pass(time.Second)
		n.remove("s")
		n.until(3*time.Second, "it is gone", func() bool { return n.gone("s") })
		require.LessOrEqual(n, n.only("s", "StopContainer").Took(), 2*time.Second)
	})
}

// A container without its image keeps no other one from running; the pod is
// pending until all have run.
func TestOneImageThatCannotBeHad(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.sim.Inject(crisim.Fault{Method: "PullImage", Object: "bad:1", Do: crisim.Fail(codes.NotFound, "no such image")})
		n.write("s", manifest("s", container("bad", "bad:1"), container("good", "app:1")))
		n.untilRuns(5*time.Second, "s", "good")
		n.pass(10 * time.Minute)
		require.True(n, n.runs("s", "good"))
		require.Equal(n, v1.PodPending, n.phase("s"))
		require.Contains(n, []string{"ErrImagePull", "ImagePullBackOff"}, n.waiting("s", "bad"))
	})
}

// Each call of a takedown goes wrong for a while: the stage that failed says
// so, and the pod goes when the fault is lifted.
func TestTakedownNamesWhatFails(t *testing.T) {
	for method, kind := range map[string]string{
		"StopContainer": "stop", "StopPodSandbox": "sandbox.stop", "RemoveContainer": "containers.remove", "RemovePodSandbox": "sandbox.remove",
	} {
		t.Run(method, func(t *testing.T) {
			scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
				n.write("s", manifest("s"))
				n.untilRuns(5*time.Second, "s", "web")
				n.sim.Inject(crisim.Fault{Method: method, Do: crisim.Fail(codes.Unknown, "the disk is on fire")})
				n.remove("s")
				n.pass(10 * time.Second)
				v, ok := n.view("s")
				require.True(n, ok)
				failed := []string{}
				for id, e := range v.Memo {
					if e.Err != nil {
						require.ErrorContains(n, e.Err, "the disk is on fire")
						failed = append(failed, id.Kind)
					}
				}
				require.Equal(n, []string{kind}, failed)
				n.sim.ClearFaults()
				n.until(20*time.Second, "it is gone", func() bool { return n.gone("s") })
			})
		})
	}
}
