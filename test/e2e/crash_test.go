//go:build e2e

package e2e_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// kills is how often the agent is killed: in each round some times while the example pods start, then while they run, then
// while they end.
const rounds, killsAtStart, killsInBetween, killsAtEnd = 4, 3, 1, 1

// An agent that is killed at any moment and started again gets to where it would have got, and no container that ran is
// restarted or made a second time. SEED repeats a run.
func TestKilledAtAnyMoment(t *testing.T) {
	sawOn(t, node, "restart of the agent: SIGKILL at any moment")
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
		w := &witness{agent: a, random: random, runs: map[string][]inspected{}}
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

// witness remembers what ran: the agent removes old containers.
type witness struct {
	*agent
	random *rand.Rand
	runs   map[string][]inspected // by UID and name; one that still ran when it was seen comes last
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

// look notes what runs and ran. A container whose start the kill cut off has never run.
func (w *witness) look() {
	w.t.Helper()
	for _, c := range slices.Backward(w.containers()) {
		got, err := w.inspect(c.ID)
		if err != nil || got.Reason == "StartError" || got.State != containerRunning && got.State != containerExited {
			continue
		}
		key := c.Labels[uidLabel] + "/" + c.Labels[containerLabel]
		runs := w.runs[key]
		if i := slices.IndexFunc(runs, func(r inspected) bool { return r.ID == c.ID }); i >= 0 {
			runs[i] = got
		} else {
			w.runs[key] = append(runs, got)
		}
	}
}

// everythingRanOnce requires that every container has had the runs it needs, and no more.
func (w *witness) everythingRanOnce() {
	w.t.Helper()
	w.look()
	got := map[string][]int32{} // exit codes, -1 for running
	for key, runs := range w.runs {
		_, name, _ := strings.Cut(key, "/")
		for i, r := range runs {
			code := r.ExitCode
			if r.State == containerRunning {
				code = -1
			}
			got[name] = append(got[name], code)
			if name == "app" && i > 1 { // the first restart is immediate
				pause := r.StartedAt.Sub(runs[i-1].FinishedAt)
				require.GreaterOrEqual(w.t, pause, 10*time.Second, "the back-off of attempt %d was forgotten", r.Metadata.Attempt)
			}
		}
	}
	require.NotEmpty(w.t, got["app"])
	delete(got, "app")
	// Both runs of the job may be over before anybody looked, and only the last one is kept.
	require.Contains(w.t, [][]int32{{1, 0}, {0}}, got["worker"])
	delete(got, "worker")
	require.Equal(w.t, map[string][]int32{"page": {0}, "clock": {-1}, "server": {-1}, "writer": {-1}, "reader": {-1}}, got)
}
