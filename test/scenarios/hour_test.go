package scenarios_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

const hour = time.Hour

// longDay is an hour in which all happens to pods that can: probes that fail,
// hooks, crash loops that end, jobs, sidecars, an active deadline, a restart of
// all containers, edits, removals and a return. At its end, and in the minutes
// before, nothing happens, so that what an absence of the agent delayed is done.
// A manifest that goes is away for longer than any absence.
func longDay() []moment {
	web := func(version string) string {
		return manifest("web", grace(5), emptyDir("v"), sidecar("log"), initContainer("i"),
			container("a", "app:1", args(version), mount("v"), probed), container("b", "slow:1", postStart),
			does(`{"i":{"exit":{"after":"1s"}},"log":[{"exit":{"after":"25m","code":1}},{}],
				"a":[{"exec":[{"command":"alive","from":"14m","code":1}]},{}],"b":{"exec":[{"command":"hello","after":"2s"}]}}`))
	}
	fixed := func(version string) string {
		return manifest("fixed", uid("u-fixed"), grace(3), container("web", "app:"+version, args(version)), does(`{"web":{"term":{"after":"1s"}}}`))
	}
	return []moment{
		{0, func(n *node) {
			n.disk.write("web.yaml", web("v1"))
			n.disk.write("fixed.yaml", fixed("1"))
			n.disk.write("crash.yaml", manifest("crash", does(`{"web":[{"exit":{"after":"1s","code":1}},{"exit":{"after":"2s","code":1}},
				{"exit":{"code":0}},{"exit":{"after":"1s","code":1}},{"exit":{"after":"3s","code":1}},{}]}`)))
			n.disk.write("job.yaml", manifest("job", restart(v1.RestartPolicyOnFailure), sidecar("log"),
				does(`{"web":[{"exit":{"after":"4m","code":1}},{"exit":{"after":"4m","code":2}},{"exit":{"after":"30s"}}],"log":{"term":{"after":"500ms"}}}`)))
			n.disk.write("late.yaml", manifest("late", activeDeadline(20*60), grace(10), sidecar("log"), container("web", "app:1"),
				does(`{"web":{"term":{"after":"4s"}}}`)))
			n.disk.write("gang.yaml", manifest("gang", restart(v1.RestartPolicyNever), sidecar("log"), initContainer("i"),
				container("w1", "app:1", onExit(42, v1.ContainerRestartRuleActionRestartAllContainers)), container("w2", "app:1", postStart),
				does(`{"i":{"exit":{"after":"300ms"}},"w1":[{"exit":{"after":"10m","code":42}},{"exit":{"after":"10m","code":42}},{}],"w2":{"term":{"ignore":true}}}`)))
			n.disk.write("leaves.yaml", manifest("leaves", grace(30), sidecar("log"), container("web", "app:1", preStop),
				does(`{"web":{"exec":[{"command":"drain","after":"5s"}]}}`)))
		}},
		{5 * time.Minute, func(n *node) { n.disk.write("fixed.yaml", fixed("2")) }},
		{30 * time.Minute, func(n *node) { n.disk.write("web.yaml", web("v2")) }},
		{32 * time.Minute, func(n *node) { n.disk.remove("leaves.yaml") }},
		{33 * time.Minute, func(n *node) { n.disk.remove("fixed.yaml") }},
		{35 * time.Minute, func(n *node) { n.disk.write("fixed.yaml", fixed("3")) }},
		{36 * time.Minute, func(n *node) {
			n.disk.write("leaves.yaml", manifest("leaves", grace(1), container("web", "app:1", preStop)))
		}},
	}
}

// probed has all probes; liveness fails when the script says so.
func probed(c *v1.Container) {
	probe := func(command string) *v1.Probe {
		return &v1.Probe{
			ProbeHandler:  v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{command}}},
			PeriodSeconds: 60, FailureThreshold: 2,
		}
	}
	c.StartupProbe, c.LivenessProbe, c.ReadinessProbe = probe("up"), probe("alive"), probe("ready")
}

func preStop(c *v1.Container) {
	c.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"drain"}}}}
}

// made lists how many containers of each name were made in all, which outcome
// does not show of those that are gone.
func (n *node) allMade() map[string]int {
	made := map[string]int{}
	for _, c := range n.calls("", "CreateContainer") {
		if c.Err == "" {
			made[c.Pod+"/"+c.Container]++
		}
	}
	return made
}

func TestKilledAtAnyTimeOfAnHourEndsTheSame(t *testing.T) {
	var want []string
	kills := number("SCENARIO_HOURS", 200)
	var made map[string]int
	scenario(t, busySetup(), func(n *node) {
		n.script(hour, longDay())
		want, made = n.outcome(), n.allMade()
		require.Equal(n, 1, n.count("late-n1", "RunPodSandbox"))
		if testing.Verbose() {
			n.Log(want, made)
		}
	})
	for i, kill := range randomKills(kills) {
		t.Run(fmt.Sprint(i, " at ", kill.at, " for ", kill.down), func(t *testing.T) {
			t.Parallel()
			scenario(t, busySetup(), func(n *node) {
				n.script(hour, longDay(),
					moment{kill.at, func(n *node) { n.kill() }},
					moment{kill.at + kill.down, func(n *node) { n.start() }})
				if diff := cmp.Diff(want, n.outcome()) + cmp.Diff(made, n.allMade()); diff != "" {
					n.dump()
					require.Empty(n, diff)
				}
			})
		})
	}
}

type absence struct{ at, down time.Duration }

// randomKills are times in the hour, half of them shortly after something
// happened; the same in each run with one SCENARIO_SEED.
func randomKills(count int) []absence {
	r := rand.New(rand.NewPCG(uint64(number("SCENARIO_SEED", 1)), 7))
	busy := []time.Duration{
		0, 5 * time.Minute, 10 * time.Minute, 14 * time.Minute, 20 * time.Minute, 25 * time.Minute, 30 * time.Minute,
		32 * time.Minute, 33 * time.Minute, 35 * time.Minute,
	}
	downs := []time.Duration{0, 400 * time.Millisecond, 3 * time.Second, 45 * time.Second}
	out := make([]absence, count)
	for i := range out {
		at := time.Duration(r.Int64N(int64(50 * time.Minute)))
		if i%2 == 0 {
			at = busy[r.IntN(len(busy))] + time.Duration(r.Int64N(int64(8*time.Second)))
		}
		out[i] = absence{at.Round(time.Millisecond), downs[r.IntN(len(downs))]}
	}
	return out
}
