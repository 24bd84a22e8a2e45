package dag_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/dag/dagtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// delivery is one call of deliver.
type delivery struct {
	key   string
	id    dag.ID
	facts int
	err   error
}

// world is an engine in a bubble with all that a test wants to know of it.
type world struct {
	*dag.Engine[string, int]

	t        *testing.T
	recorder *dagtest.Recorder[string]
	start    time.Time
	stop     func()
	done     chan error // of Run

	mu        sync.Mutex
	delivered []delivery
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// stoppedEngine returns a world whose engine does not run yet.
func stoppedEngine(t *testing.T, policy dag.Policy) *world {
	t.Helper()
	w := &world{t: t, recorder: &dagtest.Recorder[string]{}, start: time.Now()}
	w.Engine = dag.New(policy, func(k string, id dag.ID, facts int, err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.delivered = append(w.delivered, delivery{k, id, facts, err})
	}, dag.Options[string]{Observer: w.recorder, Validate: true})
	return w
}

// engine returns a world whose engine runs until the test ends.
func engine(t *testing.T, policy dag.Policy) *world {
	t.Helper()
	w := stoppedEngine(t, policy)
	w.run()
	return w
}

func (w *world) run() {
	ctx, stop := context.WithCancel(context.Background()) //nolint:usetesting // ended by the clean-up below
	w.stop, w.done = stop, make(chan error, 1)
	go func() { w.done <- w.Run(ctx); close(w.done) }()
	synctest.Wait()
	w.t.Cleanup(func() {
		stop()
		<-w.done
		require.Empty(w.t, w.recorder.Breach())
	})
}

// step steps a key with a graph of nodes, again while the engine asks for it at
// once, and returns the memo when all is quiet.
func (w *world) step(k string, nodes ...node) dag.Memo {
	w.stepGraph(k, graph(nodes...))
	return w.Memo(k)
}

func (w *world) stepGraph(k string, g *dag.Graph[int]) {
	for {
		_, next := w.Step(k, g)
		synctest.Wait()
		if next.IsZero() || next.After(time.Now()) {
			return
		}
	}
}

// pass lets virtual time pass.
func (w *world) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// state returns where a stage stands.
func (w *world) state(k, stage string) dag.State { return w.Memo(k)[id(stage)].State }

// deliveries returns what was delivered so far.
func (w *world) deliveries() []delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]delivery(nil), w.delivered...)
}

// queue returns what Queues shows of a class.
func (w *world) queue(class string) dag.Queue[string] {
	for _, q := range w.Queues() {
		if q.Class == class {
			return q
		}
	}
	return dag.Queue[string]{}
}

// takes returns a stage that takes some time and succeeds.
func takes(d time.Duration) *dagtest.Stage { return dagtest.Do(dagtest.Script{Takes: d}) }

// deaf returns a stage that takes some time whatever happens to its context.
func deaf(d time.Duration) *dagtest.Stage { return dagtest.Do(dagtest.Script{Takes: d, Deaf: true}) }

// fails returns a stage that fails at once.
func fails(err error) *dagtest.Stage { return dagtest.Do(dagtest.Script{Err: err}) }

// work returns a node with something to do.
func work(stage, do string, s *dagtest.Stage) node {
	return node{ID: id(stage), Key: key(do), Run: s.Run}
}
