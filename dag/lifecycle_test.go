package dag_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/dag/dagtest"
)

func TestShutdown(t *testing.T) {
	bubble(t, "idle: at once", func(t *testing.T) {
		w := engine(t, nil)
		w.stop()
		require.NoError(t, <-w.done)
		require.Equal(t, w.start, time.Now())
	})
	bubble(t, "runs are cancelled with the cause, atomic ones end by themselves", func(t *testing.T) {
		w := engine(t, nil)
		a, b := takes(time.Hour), takes(10*s)
		atomicNode := work("b", "x", b)
		atomicNode.Atomic = true
		w.step("k", work("a", "x", a), atomicNode)
		w.stop()
		require.NoError(t, <-w.done)
		require.Equal(t, w.start.Add(10*s), time.Now())
		require.ErrorIs(t, a.Runs()[0].Cause, dag.ErrStopping)
		require.Equal(t, w.start, a.Runs()[0].End)
		require.NoError(t, b.Runs()[0].Cause)
		require.Equal(t, dag.Waiting, w.state("k", "a"), "no failure")
		require.Equal(t, dag.Done, w.state("k", "b"))
		require.Len(t, w.deliveries(), 2)
	})
	bubble(t, "atomic ones end at their deadline at the latest", func(t *testing.T) {
		w := engine(t, dag.Policy{"": {Deadline: 5 * s}})
		n := work("a", "x", takes(time.Hour))
		n.Atomic = true
		w.step("k", n)
		w.stop()
		require.NoError(t, <-w.done)
		require.Equal(t, w.start.Add(5*s), time.Now())
		require.Equal(t, dag.Failed, w.state("k", "a"))
	})
	bubble(t, "what is queued stays queued, and what comes joins it", func(t *testing.T) {
		w := engine(t, dag.Policy{"": {Slots: 1}})
		w.step("k1", work("a", "x", takes(time.Hour)))
		b, c := takes(s), takes(s)
		w.step("k2", work("a", "x", b))
		w.stop()
		require.NoError(t, <-w.done)
		w.step("k3", work("a", "x", c))
		w.SetPolicy(nil)
		w.pass(time.Hour)
		require.Equal(t, dag.Queued, w.state("k2", "a"))
		require.Equal(t, dag.Queued, w.state("k3", "a"))
		require.Empty(t, append(b.Runs(), c.Runs()...))
	})
	bubble(t, "the lost are named and left behind", func(t *testing.T) {
		w := engine(t, dag.Policy{"": {Deadline: 5 * s}})
		w.step("default/web", node{ID: dag.ID{Kind: "volume", Of: "data"}, Key: key("mount"), Run: deaf(time.Hour).Run})
		w.pass(time.Minute)
		w.stop()
		err := <-w.done
		require.EqualError(t, err, "calls did not return after their deadline and are left behind: "+
			"default/web volume[data] (mount, lost since 2000-01-01T00:00:06Z)")
		require.Equal(t, w.start.Add(time.Minute), time.Now())
		w.pass(2 * time.Hour)
		require.Len(t, w.deliveries(), 1, "it is delivered when it comes back")
	})
	bubble(t, "a run that gets lost during shutdown is not waited for either", func(t *testing.T) {
		w := engine(t, dag.Policy{"": {Deadline: 5 * s, Grace: s}})
		w.step("k", work("a", "x", deaf(time.Hour)))
		w.stop()
		require.ErrorContains(t, <-w.done, "k a (x, lost since 2000-01-01T00:00:06Z)")
		require.Equal(t, w.start.Add(6*s), time.Now())
		w.pass(time.Hour)
	})
	bubble(t, "Run is for once", func(t *testing.T) {
		w := engine(t, nil)
		require.Error(t, w.Run(t.Context()))
	})
}

func TestDeliveryIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, recorder: &dagtest.Recorder[string]{}, start: time.Now()}
		delivered := false
		w.Engine = dag.New(nil, func(string, dag.ID, int, error) {
			time.Sleep(5 * s)
			delivered = true
		}, dag.Options[string]{Observer: w.recorder, Validate: true})
		w.run()
		w.step("k", work("a", "x", takes(s)))
		w.pass(2 * s)
		require.Equal(t, dag.Done, w.state("k", "a"))
		require.False(t, w.Forget("k"), "its facts are on their way")
		w.stop()
		require.NoError(t, <-w.done)
		require.True(t, delivered)
		require.True(t, w.Forget("k"))
	})
}

func TestSettledStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := engine(t, nil)
		g := chain(15)
		for range 16 {
			w.stepGraph("k", g)
		}
		moves := len(w.recorder.Moves())
		before := w.Memo("k")
		after, next := w.Step("k", g)
		require.Equal(t, before, after)
		require.Zero(t, next)
		require.Len(t, w.recorder.Moves(), moves, "nothing moves")
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() { w.Step("k", g) }), 2.0)
	})
}

// chain returns a graph of n stages, each with something to do and a need for
// the one before.
func chain(n int) *dag.Graph[int] {
	_, g := settled(n)
	return dagtest.Graph(g.Nodes(), func(n *node) { n.Run = takes(0).Run })
}

func BenchmarkStepSettled15(b *testing.B) {
	e := dag.New(nil, func(string, dag.ID, int, error) {}, dag.Options[string]{})
	_, g := settled(15)
	idle := dagtest.Graph(g.Nodes(), func(n *node) { n.Key = dag.Key{} })
	e.Step("k", idle)
	b.ReportAllocs()
	for b.Loop() {
		e.Step("k", idle)
	}
}
