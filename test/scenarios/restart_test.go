package scenarios_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/cri/crisim"
)

// onExit adds a rule for an exit code to a container that is restarted for
// nothing else.
func onExit(code int32, action v1.ContainerRestartRuleAction) func(c *v1.Container) {
	return func(c *v1.Container) {
		never := v1.ContainerRestartPolicyNever
		c.RestartPolicy = &never
		c.RestartPolicyRules = append(c.RestartPolicyRules, v1.ContainerRestartRule{
			Action:    action,
			ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{code}},
		})
	}
}

// gang is a pod of which one worker ends with 42 after two seconds, once, and
// makes all start anew.
func gang() string {
	return manifest("gang", restart(v1.RestartPolicyNever), sidecar("log"), initContainer("i"),
		container("w1", "app:1", onExit(42, v1.ContainerRestartRuleActionRestartAllContainers)),
		container("w2", "app:1", func(c *v1.Container) {
			c.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 20}}}
		}),
		does(`{"i":{"exit":{"after":"300ms"}},"w1":[{"exit":{"after":"2s","code":42}},{}],"w2":{"term":{"ignore":true}}}`))
}

func gangSetup() setup {
	s := busySetup()
	s.sim.Images = here1
	return s
}

func TestRestartOfAllContainers(t *testing.T) {
	scenario(t, gangSetup(), func(n *node) {
		n.write("gang", gang())
		n.untilRuns(5*time.Second, "gang", "w1")
		restarting := func() v1.PodCondition {
			v, _ := n.view("gang")
			return conditionOf(v.Status, v1.AllContainersRestarting)
		}
		require.Equal(n, v1.ConditionFalse, restarting().Status)
		n.until(5*time.Second, "w1 ended", func() bool { return restarting().Status == v1.ConditionTrue })
		require.Equal(n, "RestartAllContainersStarted", restarting().Reason)
		n.until(5*time.Second, "w1 is removed", func() bool { return n.waiting("gang", "w1") == "RestartingAllContainers" })

		n.until(10*time.Second, "it runs again", func() bool { return len(n.starts("gang", "w2")) == 2 && n.runs("gang", "log", "w1", "w2") })
		n.pass(5 * time.Second)
		require.Equal(n, v1.ConditionFalse, restarting().Status)
		v, _ := n.view("gang")
		require.Equal(n, v1.PodRunning, v.Status.Phase)
		for _, st := range append(v.Status.InitContainerStatuses, v.Status.ContainerStatuses...) {
			require.EqualValues(n, 1, st.RestartCount, st.Name)
			require.NotNil(n, st.LastTerminationState.Terminated, st.Name)
			require.Equal(n, "RestartingAllContainers", st.LastTerminationState.Terminated.Reason)
			require.EqualValues(n, 137, st.LastTerminationState.Terminated.ExitCode)
			require.Len(n, n.starts("gang", st.Name), 2)
		}
		require.Equal(n, 1, n.count("gang", "RunPodSandbox"), "the sandbox stays")

		stop := n.lastStop("w2")
		require.Less(n, stop.Took(), 3*time.Second, "no hook, no grace")
		removed := n.calls("gang", "RemoveContainer")
		require.Len(n, removed, 4)
		require.Equal(n, "w1", removed[3].Container, "the one whose end was the reason goes last")
		require.Greater(n, n.starts("gang", "i")[1], n.starts("gang", "log")[1], "in order again")
		require.Greater(n, n.starts("gang", "w1")[1], n.starts("gang", "i")[1]+300*time.Millisecond)
	})
}

func (n *node) lastStop(container string) (last crisim.Call) {
	for _, c := range n.calls("", "StopContainer") {
		if c.Container == container {
			last = c
		}
	}
	return last
}

// made is how many containers of that name were made.
func (n *node) made(name, container string) (made int) {
	for _, c := range n.calls(name, "CreateContainer") {
		if c.Container == container && c.Err == "" {
			made++
		}
	}
	return made
}

func conditionOf(st *v1.PodStatus, kind v1.PodConditionType) v1.PodCondition {
	for _, c := range st.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return v1.PodCondition{}
}

// The agent is killed at any time around a restart of all: each container is
// made exactly once more, in its order.
func TestRestartOfAllContainersByTwoAgents(t *testing.T) {
	for at := 2500 * time.Millisecond; at < 8*time.Second; at += 50 * time.Millisecond {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			scenario(t, gangSetup(), func(n *node) {
				n.write("gang", gang())
				n.pass(at)
				n.kill()
				n.pass(time.Duration(at.Milliseconds()%3) * 200 * time.Millisecond)
				n.start()
				n.pass(30 * time.Second)
				v, _ := n.view("gang")
				for _, c := range []string{"log", "i", "w1", "w2"} {
					if n.made("gang", c) != 2 {
						n.dump()
					}
					require.Equal(n, 2, n.made("gang", c), c)
				}
				require.True(n, n.runs("gang", "log", "w1", "w2"))
				require.Equal(n, "Running", string(v.Status.Phase))
				for _, st := range append(v.Status.InitContainerStatuses, v.Status.ContainerStatuses...) {
					require.EqualValues(n, 1, st.RestartCount, fmt.Sprint(st.Name, " after ", at))
				}
			})
		})
	}
}
