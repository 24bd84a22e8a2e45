package scenarios_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/cri/crisim"
)

// moment is something that happens to the node at a time.
type moment struct {
	at time.Duration
	do func(n *node)
}

// busy is a minute in the life of a node: a pod with a sidecar, one in a crash
// loop, a job, one that is edited and one that leaves.
func busy() []moment {
	deaf := does(`{"web":{"term":{"ignore":true}}}`)
	return []moment{
		{0, func(n *node) {
			n.disk.write("web.yaml", manifest("web", sidecar("log"), initContainer("i"), container("a", "app:1"), container("b", "slow:1"),
				emptyDir("v"), does(`{"i":{"exit":{"after":"1s"}}}`)))
			n.disk.write("crash.yaml", manifest("crash", does(`{"web":{"exit":{"after":"1s","code":1}}}`)))
			n.disk.write("job.yaml", manifest("job", restart(v1.RestartPolicyOnFailure), sidecar("log"),
				does(`{"web":{"exit":{"after":"4s"}},"log":{"term":{"after":"500ms"}}}`)))
			n.disk.write("edit.yaml", manifest("edit", grace(2), container("web", "app:1", args("v1")), deaf))
			n.disk.write("leaves.yaml", manifest("leaves", grace(3), sidecar("log"), container("web", "app:1"), deaf))
		}},
		{15 * time.Second, func(n *node) {
			n.disk.write("edit.yaml", manifest("edit", grace(2), container("web", "app:1", args("v2")), deaf))
		}},
		{20 * time.Second, func(n *node) { n.disk.remove("leaves.yaml") }},
	}
}

const minute = time.Minute

func busySetup() setup {
	latency := someLatency()
	latency["RunPodSandbox"] = crisim.Fixed(300 * time.Millisecond)
	latency["CreateContainer"] = crisim.Fixed(60 * time.Millisecond)
	latency["StartContainer"] = crisim.Fixed(100 * time.Millisecond)
	return setup{sim: crisim.Config{
		Latency: latency, Images: map[string]crisim.Image{"slow:1": {Pull: 2 * time.Second}, "app:1": {Pull: 200 * time.Millisecond}},
	}}
}

// script lets a script of that length pass, with more moments.
func (n *node) script(length time.Duration, script []moment, more ...moment) {
	all := append(slices.Clone(script), more...)
	slices.SortStableFunc(all, func(a, b moment) int { return int(a.at - b.at) })
	for _, m := range all {
		if d := m.at - time.Since(n.began); d > 0 {
			n.pass(d)
		}
		m.do(n)
	}
	n.pass(length - time.Since(n.began))
}

// outcome is what there is in the end: every object in the runtime and every
// status, without what differs from run to run.
func (n *node) outcome() []string {
	var out []string
	for _, sb := range n.sim.Sandboxes() {
		m := sb.Status.GetMetadata()
		out = append(out, fmt.Sprintf("sandbox %s #%d %s", m.GetName(), m.GetAttempt(), sb.Status.GetState()))
	}
	for _, c := range n.sim.Containers() {
		out = append(out, fmt.Sprintf("container %s/%s #%d %s %d %v", c.Pod.GetName(), c.Status.GetMetadata().GetName(),
			c.Status.GetMetadata().GetAttempt(), c.Status.GetState(), c.Status.GetExitCode(), c.Config.GetArgs()))
	}
	for _, v := range n.agent.Store.All() {
		line := fmt.Sprintf("pod %s %s %s:", v.State.Identity.Name, v.State.Phase, v.Status.Phase)
		for _, st := range v.Status.ContainerStatuses {
			line += fmt.Sprintf(" %s restarts %d", st.Name, st.RestartCount)
		}
		out = append(out, line)
	}
	out = append(out, fmt.Sprint(len(n.stateFiles()), " state files"))
	slices.Sort(out)
	return out
}

func TestKilledAtAnyTimeEndsTheSame(t *testing.T) {
	var want []string
	scenario(t, busySetup(), func(n *node) {
		n.script(minute, busy())
		want = n.outcome()
		if testing.Verbose() {
			n.Log(want)
		}
	})
	downs := []time.Duration{0, 400 * time.Millisecond, 3 * time.Second}
	for i, at := range killTimes() {
		down := downs[i%len(downs)]
		t.Run(fmt.Sprint("at ", at, " for ", down), func(t *testing.T) {
			t.Parallel()
			scenario(t, busySetup(), func(n *node) {
				n.script(minute, busy(),
					moment{at, func(n *node) { n.kill() }},
					moment{at + down, func(n *node) { n.start() }})
				if diff := cmp.Diff(want, n.outcome()); diff != "" {
					n.dump()
					require.Empty(n, diff)
				}
			})
		})
	}
}

// killTimes are 200 (or SCENARIO_KILLS) times, most of them when much happens.
func killTimes() []time.Duration {
	kills := 200
	if s, err := strconv.Atoi(os.Getenv("SCENARIO_KILLS")); err == nil {
		kills = s
	}
	windows := [][2]time.Duration{ // of equal weight
		{0, 700 * time.Millisecond},
		{700 * time.Millisecond, 2 * time.Second},
		{2 * time.Second, 7 * time.Second},
		{12 * time.Second, 14 * time.Second},
		{15 * time.Second, 18 * time.Second},
		{18 * time.Second, 20 * time.Second},
		{20 * time.Second, 25 * time.Second},
		{32 * time.Second, 36 * time.Second},
	}
	var out []time.Duration
	per := kills / len(windows)
	for _, w := range windows {
		for i := range per {
			out = append(out, w[0]+(w[1]-w[0])*time.Duration(i)/time.Duration(per))
		}
	}
	return out
}

// A manifest goes at any time of its pod's start: it leaves nothing behind, and
// nothing is made after it was seen to go.
func TestRemovedAtAnyTimeOfItsStart(t *testing.T) {
	atAnyTime(t, func(n *node) {
		n.remove("s")
		n.pass(100 * time.Millisecond)
		n.until(10*time.Second, "it is gone", func() bool { return n.gone("s") })
		n.pass(time.Minute)
		require.Empty(n, n.sim.Sandboxes())
		require.Empty(n, n.sim.Containers())
		require.Empty(n, n.stateFiles())
	})
}

func TestEditedAtAnyTimeOfItsStart(t *testing.T) {
	atAnyTime(t, func(n *node) {
		n.write("s", starting(args("v2")))
		n.pass(time.Minute)
		require.Len(n, n.agent.Store.All(), 1)
		require.Len(n, n.sim.Sandboxes(), 1)
		require.True(n, n.runs("s", "log", "a", "b"))
		c, _ := n.find("s", "a")
		require.Equal(n, []string{"v2"}, c.Config.GetArgs())
		require.Len(n, n.stateFiles(), 1)
	})
}

func TestPutBackAtAnyTimeOfItsStart(t *testing.T) {
	atAnyTime(t, func(n *node) {
		n.remove("s")
		n.pass(300 * time.Millisecond)
		n.write("s", starting(args("v1")))
		n.pass(time.Minute)
		require.Len(n, n.agent.Store.All(), 1)
		require.Len(n, n.sim.Sandboxes(), 1)
		require.True(n, n.runs("s", "log", "a", "b"))
		require.Len(n, n.stateFiles(), 1)
	})
}

// starting is a pod with a fixed UID, so that it may come back while it ends.
func starting(a func(*v1.Container), more ...part) string {
	return manifest("s", append(more, grace(2), emptyDir("v"), sidecar("log"), initContainer("i"), container("a", "app:1", a, mount("v")),
		container("b", "slow:1"), does(`{"i":{"exit":{"after":"300ms"}}}`))...)
}

// atAnyTime lets a pod start and does something after every 20 ms of it.
func atAnyTime(t *testing.T, do func(n *node)) {
	t.Helper()
	for at := time.Duration(0); at < 2500*time.Millisecond; at += 40 * time.Millisecond {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			s := busySetup()
			s.volumes = &volumes{takes: map[string]time.Duration{"v": 100 * time.Millisecond}}
			scenario(t, s, func(n *node) {
				n.write("s", starting(args("v1")))
				n.pass(at)
				do(n)
			})
		})
	}
}
