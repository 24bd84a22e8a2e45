package scenarios_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/cri/crisim"
)

// argument is the only argument of a pod's newest container "web".
func (n *node) argument(name string) string {
	c, ok := n.find(name, "web")
	if !ok || len(c.Config.GetArgs()) != 1 {
		return ""
	}
	return c.Config.GetArgs()[0]
}

// Of many edits in a row only the first and the last version run: the first
// gets its whole grace, once, and the last starts when it is gone.
func TestOfManyEditsOnlyTheLastRuns(t *testing.T) {
	for name, more := range map[string][]part{"UIDs made of the text": nil, "a UID of the user": {uid("u-1")}} {
		t.Run(name, func(t *testing.T) {
			images := map[string]crisim.Image{"app:1": {Present: true}}
			for i := range 20 {
				images[fmt.Sprint("app:v", i)] = crisim.Image{Pull: 3 * time.Second}
			}
			scenario(t, setup{sim: crisim.Config{Images: images}}, func(n *node) {
				n.write("s", manifest("s", append(more, grace(10), container("web", "app:1", args("first")), does(`{"web":{"term":{"ignore":true}}}`))...))
				n.untilRuns(5*time.Second, "s", "web")
				edited := time.Now()
				for i := range 20 {
					n.write("s", manifest("s", append(more, grace(10), container("web", fmt.Sprint("app:v", i), args(fmt.Sprint("v", i))))...))
					n.pass(50 * time.Millisecond)
				}
				n.until(20*time.Second, "the last one runs", func() bool { return n.argument("s") == "v19" && n.runs("s", "web") })
				require.Len(n, n.starts("s", "web"), 2)
				stop := n.only("s", "StopContainer")
				require.Less(n, stop.Start.Sub(edited), 2*time.Second)
				require.InDelta(n, 10, stop.Took().Seconds(), 1)
				require.Less(n, n.at(time.Now())-n.at(stop.End), time.Second, "its pull did not wait for that")
				n.pass(time.Minute)
				require.Len(n, n.starts("s", "web"), 2)
				require.Len(n, n.agent.Store.All(), 1)
				require.Len(n, n.stateFiles(), 1)
				require.Len(n, n.sim.Sandboxes(), 1)
			})
		})
	}
}

// Edited back to what runs, before that has ended: it is not the same pod any more.
func TestEditThatIsTakenBack(t *testing.T) {
	for _, after := range []time.Duration{0, 30 * time.Millisecond, time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
				text := func(v string) string {
					return manifest("s", grace(10), container("web", "app:1", args(v)), does(`{"web":{"term":{"after":"5s"}}}`))
				}
				n.write("s", text("one"))
				n.untilRuns(5*time.Second, "s", "web")
				n.write("s", text("two"))
				n.pass(after)
				n.write("s", text("one"))
				n.pass(time.Minute)
				require.True(n, n.runs("s", "web"))
				require.Equal(n, "one", n.argument("s"))
				require.LessOrEqual(n, len(n.starts("s", "web")), 2)
				require.Len(n, n.agent.Store.All(), 1)
				require.Len(n, n.sim.Sandboxes(), 1)
			})
		})
	}
}

// A manifest that goes and comes back with no fixed UID is a pod again.
func TestManifestThatGoesAndComesBack(t *testing.T) {
	for _, away := range []time.Duration{0, 100 * time.Millisecond, 3 * time.Second, time.Minute} {
		for _, restartAgent := range []bool{false, true} {
			t.Run(fmt.Sprint(away, " restart ", restartAgent), func(t *testing.T) {
				scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
					text := manifest("s", grace(10), does(`{"web":{"term":{"after":"5s"}}}`))
					n.write("s", text)
					n.untilRuns(5*time.Second, "s", "web")
					n.remove("s")
					n.pass(away)
					if restartAgent {
						n.restartAgent(true)
					}
					n.write("s", text)
					n.pass(30 * time.Second)
					require.True(n, n.runs("s", "web"))
					require.Len(n, n.sim.Sandboxes(), 1)
					require.Len(n, n.stateFiles(), 1)
					require.Equal(n, v1.PodRunning, n.phase("s"))
				})
			})
		}
	}
}

// A static pod that completed runs again when it is edited, not when its agent
// is restarted, nor when its manifest is written again as it was.
func TestCompletedStaticPodRunsAgainWhenEdited(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		text := func(v string) string {
			return manifest("s", restart(v1.RestartPolicyNever), container("web", "app:1", args(v)), does(`{"web":{"exit":{"after":"1s"}}}`))
		}
		n.write("s", text("one"))
		n.until(10*time.Second, "it is done", func() bool { return n.phase("s") == v1.PodSucceeded })
		n.restartAgent(true)
		n.write("s", text("one"))
		n.pass(time.Minute)
		require.Len(n, n.starts("s", "web"), 1)
		require.Equal(n, v1.PodSucceeded, n.phase("s"))
		n.write("s", text("two"))
		n.pass(10 * time.Second)
		require.Len(n, n.starts("s", "web"), 2)
		require.Equal(n, v1.PodSucceeded, n.phase("s"))
	})
}

// Rules for exit codes decide who is restarted; the pauses are those of every
// crash loop.
func TestRulesForExitCodes(t *testing.T) {
	rule := func(op v1.ContainerRestartRuleOnExitCodesOperator, codes ...int32) func(c *v1.Container) {
		return func(c *v1.Container) {
			never := v1.ContainerRestartPolicyNever
			c.RestartPolicy = &never
			c.RestartPolicyRules = []v1.ContainerRestartRule{{
				Action:    v1.ContainerRestartRuleActionRestart,
				ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: op, Values: codes},
			}}
		}
	}
	for _, c := range []struct {
		name  string
		rule  func(c *v1.Container)
		code  int
		again bool
		phase v1.PodPhase
	}{
		{"42 is named", rule(v1.ContainerRestartRuleOnExitCodesOpIn, 42), 42, true, v1.PodRunning},
		{"1 is not named", rule(v1.ContainerRestartRuleOnExitCodesOpIn, 42), 1, false, v1.PodFailed},
		{"0 is not named", rule(v1.ContainerRestartRuleOnExitCodesOpIn, 42), 0, false, v1.PodSucceeded},
		{"0 is named", rule(v1.ContainerRestartRuleOnExitCodesOpIn, 0, 42), 0, true, v1.PodRunning},
		{"all but 42, and 1", rule(v1.ContainerRestartRuleOnExitCodesOpNotIn, 42), 1, true, v1.PodRunning},
		{"all but 42, and 42", rule(v1.ContainerRestartRuleOnExitCodesOpNotIn, 42), 42, false, v1.PodFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
				n.write("s", manifest("s", restart(v1.RestartPolicyNever), container("web", "app:1", c.rule),
					does(fmt.Sprintf(`{"web":{"exit":{"after":"1s","code":%d}}}`, c.code))))
				n.pass(40 * time.Second)
				starts := n.starts("s", "web")
				require.Equal(n, c.phase, n.phase("s"))
				if !c.again {
					require.Len(n, starts, 1)
					return
				}
				require.Len(n, starts, 4)
				require.Equal(n, []time.Duration{time.Second, 11 * time.Second, 21 * time.Second},
					[]time.Duration{starts[1] - starts[0], starts[2] - starts[1], starts[3] - starts[2]})
			})
		})
	}
}
