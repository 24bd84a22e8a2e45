package scenarios_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/cri/crisim"
)

// check is an exec probe of a command.
func check(command string, more ...func(p *v1.Probe)) *v1.Probe {
	p := &v1.Probe{
		ProbeHandler:  v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{command}}},
		PeriodSeconds: 2, TimeoutSeconds: 1, FailureThreshold: 1, SuccessThreshold: 1,
	}
	for _, f := range more {
		f(p)
	}
	return p
}

func (n *node) isReady(name string) bool {
	v, ok := n.view(name)
	if !ok || v.Status == nil {
		return false
	}
	for _, c := range v.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

func TestPodIsReadyWhenItsProbeHasPassed(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", container("app", "app:1", func(c *v1.Container) {
			c.ReadinessProbe = check("ready", func(p *v1.Probe) { p.InitialDelaySeconds = 15; p.PeriodSeconds = 600 })
		})))
		n.untilRuns(5*time.Second, "s", "app")
		n.pass(14 * time.Second)
		require.False(n, n.isReady("s"))
		require.Zero(n, n.count("s", "ExecSync"))
		n.pass(2 * time.Second)
		require.True(n, n.isReady("s"), "the first check is due at initialDelay, not a period later")
		require.Equal(n, 1, n.count("s", "ExecSync"))
	})
}

func TestLivenessRestartsTheContainerAndStartupComesFirst(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", container("app", "app:1", func(c *v1.Container) {
			c.StartupProbe, c.LivenessProbe = check("up"), check("alive")
		}), does(`{"app":[{"exec":[{"command":"up","until":"5s","code":1},{"command":"alive","from":"20s","code":1}]},{}]}`)))
		n.untilRuns(5*time.Second, "s", "app")
		n.pass(15 * time.Second)
		require.Len(n, n.starts("s", "app"), 2, "its startup probe failed once, with threshold 1")
		n.pass(time.Minute)
		require.Len(n, n.starts("s", "app"), 2)
		require.True(n, n.isReady("s"))
	})
}

func TestReadinessSurvivesARestartOfTheAgent(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", container("app", "app:1", func(c *v1.Container) { c.ReadinessProbe = check("ready") })))
		n.until(10*time.Second, "it is ready", func() bool { return n.isReady("s") })
		n.pass(5 * time.Second)
		before := n.count("s", writeMethods()...)
		n.kill()
		n.start()
		n.until(5*time.Second, "it is known again", func() bool { _, ok := n.view("s"); return ok && n.runs("s", "app") })
		n.pass(time.Second)
		require.True(n, n.isReady("s"), "before any check")
		n.pass(10 * time.Second)
		require.True(n, n.isReady("s"))
		require.Equal(n, before, n.count("s", writeMethods()...))
	})
}

// BC-25: one deadline for hook and stop, and the runtime gets its two seconds.
func TestPreStopThatNeverEndsIsCutAtTheGrace(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", grace(60), container("app", "app:1", func(c *v1.Container) {
			c.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"drain"}}}}
		}), does(`{"app":{"term":{"ignore":true},"exec":[{"command":"drain","after":"999999s"}]}}`)))
		n.untilRuns(5*time.Second, "s", "app")
		n.remove("s")
		n.pass(100 * time.Second)
		require.True(n, n.gone("s"))
		hook, stop := n.only("s", "ExecSync"), n.only("s", "StopContainer")
		require.Equal(n, 60*time.Second, stop.Start.Sub(hook.Start), "TERM when the grace is over")
		require.Equal(n, 2*time.Second, stop.End.Sub(stop.Start), "KILL two seconds later")
	})
}

func TestPreStopComesBeforeTheStop(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", grace(60), container("app", "app:1", func(c *v1.Container) {
			c.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 7}}}
		})))
		n.untilRuns(5*time.Second, "s", "app")
		n.pass(time.Second)
		n.remove("s")
		at := n.at(time.Now())
		n.pass(20 * time.Second)
		require.InDelta(n, (at + 7*time.Second).Seconds(), n.at(n.only("s", "StopContainer").Start).Seconds(), 1)
	})
}

func TestPostStartThatFailsRestartsTheContainer(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		n.write("s", manifest("s", container("app", "app:1", func(c *v1.Container) {
			c.Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"hello"}}}}
		}), does(`{"app":[{"exec":[{"command":"hello","code":1}]},{}]}`)))
		n.pass(10 * time.Second)
		require.Len(n, n.starts("s", "app"), 2)
		require.Equal(n, 2, n.count("s", "ExecSync"), "one hook for each container")
		require.True(n, n.runs("s", "app"))
	})
}
