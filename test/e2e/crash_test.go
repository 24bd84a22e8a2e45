//go:build e2e

package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// kills is how often the agent is killed: in each round some times while the example pods start, then while they run, then
// while they end.
const rounds, killsAtStart, killsInBetween, killsAtEnd = 4, 3, 1, 1

// An agent that is killed at any moment and started again gets to where it would have got, and no container that ran is
// restarted or made a second time. SEED repeats a run.
func TestKilledAtAnyMoment(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	a := newAgent(t, node)
	for i := range rounds {
		w := &witness{agent: a, random: random, ran: map[string]string{}}
		for _, name := range []string{"web", "shared", "crash", "job"} {
			a.write(name+".yaml", example(t, name))
		}
		if a.proc == nil {
			a.start()
		}
		for range killsAtStart {
			w.killWithin(800 * time.Millisecond)
		}
		a.untilExamplesSettle()
		w.look()
		for range killsInBetween {
			w.killWithin(500 * time.Millisecond)
		}
		a.untilExamplesSettle()
		a.agree()
		w.look()
		w.everythingRanOnce()
		files, err := filepath.Glob(filepath.Join(a.manifests, "*"))
		require.NoError(t, err)
		for _, f := range files {
			require.NoError(t, os.Remove(f))
		}
		for range killsAtEnd {
			w.killWithin(500 * time.Millisecond)
		}
		a.untilGone()
		require.Empty(t, a.leftovers(), "round %d", i)
	}
}

// witness remembers which container ran for each name.
type witness struct {
	*agent
	random *rand.Rand
	ran    map[string]string // UID/name → container ID
}

// killWithin kills the agent at a random moment and starts it again.
func (w *witness) killWithin(limit time.Duration) {
	w.t.Helper()
	moment := time.Duration(w.random.Int64N(int64(limit)))
	time.Sleep(moment)
	w.kill()
	w.t.Logf("killed after %s", moment)
	w.look()
	w.start()
}

// look requires that whatever ran before is still the same container. Crashing and retried ones have more than one run.
func (w *witness) look() {
	w.t.Helper()
	for _, c := range w.containers() {
		name := c.Labels[containerLabel]
		if c.State != containerRunning || name == "app" || name == "worker" {
			continue
		}
		key := c.Labels[uidLabel] + "/" + name
		if was, ok := w.ran[key]; ok {
			require.Equal(w.t, was, c.ID, "%s runs in another container", name)
		}
		w.ran[key] = c.ID
	}
}

// everythingRanOnce requires that every container has had the runs it needs, and no more. A container whose start the kill
// cut off has never run and may have a successor.
func (w *witness) everythingRanOnce() {
	w.t.Helper()
	pods, err := w.list()
	require.NoError(w.t, err)
	runs := map[string][]int32{} // exit codes, -1 for running, oldest first
	for _, c := range w.containers() {
		got, err := w.inspect(c.ID)
		require.NoError(w.t, err)
		code := got.ExitCode
		switch {
		case got.State == containerRunning:
			code = -1
		case got.Reason == "StartError" || got.Reason == "ContainerCannotRun" || got.State != containerExited:
			continue
		}
		name := c.Labels[containerLabel]
		runs[name] = append([]int32{code}, runs[name]...)
	}
	app := runs["app"]
	delete(runs, "app")
	require.Equal(w.t, map[string][]int32{
		"page": {0}, "clock": {-1}, "server": {-1}, "writer": {-1}, "reader": {-1}, "worker": {1, 0},
	}, runs)
	require.NotEmpty(w.t, app)
	w.backOffHolds(pods["crash"])
}

// backOffHolds requires that the runs of the crashing container kept their distance, whatever the agent forgot.
func (w *witness) backOffHolds(p *v1.Pod) {
	w.t.Helper()
	var ends []time.Time
	for _, c := range containersOf(w.containers(), string(p.UID), "app") { // the newest first
		got, err := w.inspect(c.ID)
		require.NoError(w.t, err)
		if n := len(ends); n > 0 && c.Metadata.Attempt > 0 {
			next := ends[n-1]
			require.GreaterOrEqual(w.t, next.Sub(got.FinishedAt), 10*time.Second, fmt.Sprintf("attempt %d", c.Metadata.Attempt+1))
		}
		ends = append(ends, got.StartedAt)
	}
}
