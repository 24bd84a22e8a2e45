package scenarios_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/internal/pod"
)

// restartAgent ends the agent, as SIGKILL or SIGTERM does, and starts the next.
func (n *node) restartAgent(kill bool) {
	n.Helper()
	if kill {
		n.kill()
	} else {
		n.shutDown()
	}
	n.start()
}

// watch lets time go by and calls look every 20 ms of it.
func (n *node) watch(d time.Duration, look func()) {
	n.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); n.pass(20 * time.Millisecond) {
		look()
	}
}

// status is the status of a container, false as long as there is none.
func (n *node) status(name, container string) (v1.ContainerStatus, bool) {
	v, ok := n.view(name)
	if !ok || v.Status == nil {
		return v1.ContainerStatus{}, false
	}
	for _, st := range append(append([]v1.ContainerStatus{}, v.Status.InitContainerStatuses...), v.Status.ContainerStatuses...) {
		if st.Name == container {
			return st, true
		}
	}
	return v1.ContainerStatus{}, false
}

// execution is a command that a probe or a hook ran.
type execution struct {
	pod, container, id, command string
}

// executions are what was run in all containers, in order.
type executions struct {
	mu  sync.Mutex
	all []execution
}

func (n *node) executed(r *runtimeapi.ExecSyncRequest) {
	c, ok := n.sim.Container(r.GetContainerId())
	if !ok {
		return
	}
	n.executions.mu.Lock()
	defer n.executions.mu.Unlock()
	n.executions.all = append(n.executions.all, execution{
		pod: strings.TrimSuffix(c.Pod.GetName(), "-n1"), container: c.Status.GetMetadata().GetName(), id: r.GetContainerId(), command: r.GetCmd()[0],
	})
}

// execs lists what was run in a container.
func (n *node) execs(name, container string) (out []execution) {
	n.executions.mu.Lock()
	defer n.executions.mu.Unlock()
	for _, e := range n.executions.all {
		if e.pod == name && e.container == container {
			out = append(out, e)
		}
	}
	return out
}

func (n *node) execsOf(name, container, command string) (count int) {
	for _, e := range n.execs(name, container) {
		if e.command == command {
			count++
		}
	}
	return count
}

func manyFailures(p *v1.Probe) { p.FailureThreshold = 1000 }

// BC-13: what starts up is not ready and is not checked for life, before and
// after a restart of the agent.
func TestRestartWhileAContainerStartsUp(t *testing.T) {
	for _, kill := range []bool{true, false} {
		t.Run(fmt.Sprint("killed ", kill), func(t *testing.T) {
			scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
				n.write("s", manifest("s", container("app", "app:1", func(c *v1.Container) {
					c.StartupProbe, c.LivenessProbe = check("up", manyFailures), check("alive")
				}), does(`{"app":{"exec":[{"command":"up","until":"40s","code":1},{"command":"alive","until":"40s","code":1}]}}`)))
				n.untilRuns(5*time.Second, "s", "app")
				still := func() {
					require.False(n, n.isReady("s"))
					if st, ok := n.status("s", "app"); ok && st.Started != nil {
						require.False(n, *st.Started)
					}
					require.Zero(n, n.execsOf("s", "app", "alive"))
				}
				n.watch(10*time.Second, still)
				n.restartAgent(kill)
				n.watch(20*time.Second, still)
				require.Greater(n, n.execsOf("s", "app", "up"), 10)
				n.pass(15 * time.Second)
				require.True(n, n.isReady("s"), "it has started now")
				require.NotZero(n, n.execsOf("s", "app", "alive"))
				require.Len(n, n.starts("s", "app"), 1)
			})
		})
	}
}

// A startup probe that has passed is not run again for the same container.
func TestStartupIsNotCheckedAgainAfterARestart(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", container("app", "app:1", func(c *v1.Container) { c.StartupProbe = check("up") })))
		n.until(10*time.Second, "it is ready", func() bool { return n.isReady("s") })
		n.pass(5 * time.Second)
		for _, kill := range []bool{true, false} {
			n.restartAgent(kill)
			n.until(5*time.Second, "it is known again", func() bool { return n.runs("s", "app") && n.phase("s") == v1.PodRunning })
			n.watch(10*time.Second, func() { require.True(n, n.isReady("s")) })
		}
		require.Equal(n, 1, n.execsOf("s", "app", "up"))
	})
}

// A pod that is not ready is never told ready by an agent that has not checked it.
func TestNotReadyIsNotToldReadyAfterARestart(t *testing.T) {
	for _, kill := range []bool{true, false} {
		t.Run(fmt.Sprint("killed ", kill), func(t *testing.T) {
			scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
				n.write("s", manifest("s", container("app", "app:1", func(c *v1.Container) {
					c.ReadinessProbe = check("ready", func(p *v1.Probe) { p.PeriodSeconds = 30 })
				}), does(`{"app":{"exec":[{"command":"ready","code":1}]}}`)))
				n.untilRuns(5*time.Second, "s", "app")
				for range 5 {
					n.watch(3*time.Second, func() { require.False(n, n.isReady("s")) })
					n.restartAgent(kill)
				}
				n.watch(time.Minute, func() { require.False(n, n.isReady("s")) })
			})
		})
	}
}

// BC-15: an app that crashes after a restart is restarted; its sidecar is left alone.
func TestAppCrashesAfterARestartBesideASidecar(t *testing.T) {
	for _, kill := range []bool{true, false} {
		t.Run(fmt.Sprint("killed ", kill), func(t *testing.T) {
			scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
				always := v1.ContainerRestartPolicyAlways
				n.write("s", manifest("s", initContainer("log", func(c *v1.Container) {
					c.RestartPolicy, c.StartupProbe = &always, check("up")
				}), container("app", "app:1")))
				n.untilRuns(10*time.Second, "s", "log", "app")
				n.pass(30 * time.Second)
				side, _ := n.find("s", "log")
				n.restartAgent(kill)
				n.pass(5 * time.Second)
				n.die("s", "app", 1)
				n.untilRuns(5*time.Second, "s", "log", "app")
				n.pass(time.Minute)
				st, _ := n.status("s", "app")
				require.EqualValues(n, 1, st.RestartCount)
				require.Len(n, n.starts("s", "app"), 2)
				now, _ := n.find("s", "log")
				require.Equal(n, side.Status.GetId(), now.Status.GetId())
				require.Equal(n, 1, n.execsOf("s", "log", "up"))
				require.Zero(n, n.count("s", "StopContainer"))
				require.True(n, n.isReady("s"))
			})
		})
	}
}

// BC-32: a new container has a startup of its own, and counts from zero.
func TestLivenessOfANewContainerWaitsForItsStartup(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", container("app", "app:1", func(c *v1.Container) {
			c.StartupProbe = check("up", manyFailures)
			c.LivenessProbe = check("alive", func(p *v1.Probe) { p.FailureThreshold = 3 })
		}), does(`{"app":[{"exec":[{"command":"alive","from":"20s","code":1}]},
			{"exec":[{"command":"up","until":"15s","code":1},{"command":"alive","from":"60s","code":1}]},{}]}`)))
		n.untilRuns(5*time.Second, "s", "app")
		first, _ := n.find("s", "app")
		n.pass(22 * time.Second)
		n.restartAgent(true) // in the midst of the failures
		n.until(30*time.Second, "it was restarted", func() bool { return len(n.starts("s", "app")) == 2 })
		n.pass(30 * time.Second)
		second, _ := n.find("s", "app")
		require.NotEqual(n, first.Status.GetId(), second.Status.GetId())
		var of []string
		for _, e := range n.execs("s", "app") {
			if e.id == second.Status.GetId() {
				of = append(of, e.command)
			}
		}
		ups := 0
		for ; ups < len(of) && of[ups] == "up"; ups++ {
		}
		require.Greater(n, ups, 5, "%v", of)
		require.Less(n, ups, len(of))
		require.NotContains(n, of[ups:], "up", "liveness only after the startup, which is over then")
		require.Len(n, n.starts("s", "app"), 2, "the failures of the first container do not count for the second")
		n.pass(time.Minute)
		failed := 0
		for _, c := range n.calls("s", "ExecSync") {
			if c.Object == second.Status.GetId() && n.at(c.Start) >= n.starts("s", "app")[1]+time.Minute {
				failed++
			}
		}
		require.Equal(n, 3, failed, "three failures of its own")
		require.Len(n, n.starts("s", "app"), 3)
	})
}

// Two ready sandboxes of one pod, which no agent should have made, become one
// pod again; no container of it lives twice.
func TestTwoReadySandboxesBecomeOne(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s"))
		n.untilRuns(5*time.Second, "s", "web")
		v, _ := n.view("s")
		n.kill()
		_, err := n.client().RunPodSandbox(context.Background(), &runtimeapi.PodSandboxConfig{
			Metadata:    &runtimeapi.PodSandboxMetadata{Name: v.State.Identity.Name, Namespace: "default", Uid: string(v.State.UID()), Attempt: 1},
			Labels:      map[string]string{pod.LabelPodName: v.State.Identity.Name, pod.LabelPodNamespace: "default", pod.LabelPodUID: string(v.State.UID())},
			Annotations: map[string]string{pod.AnnotationSource: "file"},
		}, "")
		require.NoError(n, err)
		n.start()
		n.pass(time.Minute)
		n.sandbox("s") // there is one that is ready
		require.True(n, n.runs("s", "web"))
		require.True(n, n.isReady("s"))
	})
}

// After a reboot every pod comes back as its policy says, and what has
// completed does not run again, whatever the state it was in.
func TestRebootWithPodsInEveryState(t *testing.T) {
	for _, kill := range []bool{true, false} {
		t.Run(fmt.Sprint("killed ", kill), func(t *testing.T) {
			scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
				n.write("web", manifest("web", container("app", "app:1", func(c *v1.Container) {
					c.StartupProbe, c.ReadinessProbe = check("up"), check("ready")
				}), does(`{"app":{"exec":[{"command":"ready","until":"5s","code":1}]}}`)))
				n.write("done", manifest("done", restart(v1.RestartPolicyOnFailure), does(`{"web":{"exit":{"after":"1s"}}}`)))
				n.write("failed", manifest("failed", restart(v1.RestartPolicyNever), does(`{"web":{"exit":{"after":"1s","code":3}}}`)))
				n.write("works", manifest("works", restart(v1.RestartPolicyOnFailure), does(`{"web":[{},{"exit":{"after":"5s"}}]}`)))
				n.write("never", manifest("never", restart(v1.RestartPolicyNever)))
				n.until(20*time.Second, "it is ready", func() bool { return n.isReady("web") })
				if kill {
					n.kill()
				} else {
					n.shutDown()
				}
				n.sim.Reboot()
				n.pass(30 * time.Second)
				rebooted := time.Now()
				n.start()
				n.watch(4*time.Second, func() {
					if len(n.starts("web", "app")) < 2 {
						require.False(n, n.isReady("web"), "nothing of it runs at %s", time.Since(rebooted))
					}
				})
				n.until(20*time.Second, "it is ready again", func() bool { return n.isReady("web") })
				n.pass(20 * time.Second)
				require.Equal(n, 2, n.execsOf("web", "app", "up"), "once for each container")
				require.Equal(n, v1.PodSucceeded, n.phase("done"))
				require.Len(n, n.starts("done", "web"), 1)
				require.Equal(n, v1.PodFailed, n.phase("failed"))
				require.Len(n, n.starts("failed", "web"), 1)
				require.Equal(n, v1.PodSucceeded, n.phase("works"))
				require.Len(n, n.starts("works", "web"), 2)
				require.Equal(n, v1.PodFailed, n.phase("never"))
				require.Len(n, n.starts("never", "web"), 1)
			})
		})
	}
}
