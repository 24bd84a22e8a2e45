package dag_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/dag/dagtest"
)

const s = time.Second

func TestRunOfAStage(t *testing.T) {
	bubble(t, "success: done, facts delivered", func(t *testing.T) {
		w := engine(t, nil)
		a := dagtest.Do(dagtest.Script{Takes: 3 * s, Facts: 7})
		w.step("k", work("a", "x", a))
		require.Equal(t, dag.Running, w.state("k", "a"))
		w.pass(3 * s)
		require.Equal(t, dag.Entry{Key: key("x"), State: dag.Done, Since: w.start.Add(3 * s), Attempt: 1}, w.Memo("k")[id("a")])
		require.Equal(t, []delivery{{"k", id("a"), 7, nil}}, w.deliveries())
		require.Equal(t, []dag.State{dag.Queued, dag.Running, dag.Done}, w.recorder.States("k", id("a")))
		w.step("k", work("a", "x", a))
		require.Len(t, a.Runs(), 1, "done is done")
	})
	bubble(t, "failure: facts are delivered too", func(t *testing.T) {
		w := engine(t, nil)
		w.step("k", work("a", "x", dagtest.Do(dagtest.Script{Err: errPull, Facts: 3})))
		require.Equal(t, []delivery{{"k", id("a"), 3, errPull}}, w.deliveries())
		require.Equal(t, errPull, w.Memo("k")[id("a")].Err)
	})
	bubble(t, "panic: an error with a stack", func(t *testing.T) {
		w := engine(t, nil)
		w.step("k", work("a", "x", dagtest.Do(dagtest.Script{Panics: errPull})))
		var p *dag.PanicError
		err := w.deliveries()[0].err
		require.ErrorAs(t, err, &p)
		require.EqualError(t, err, "panic: pull: no route to host")
		require.ErrorIs(t, err, errPull)
		require.Contains(t, string(p.Stack), "dagtest")
		require.Equal(t, dag.Failed, w.state("k", "a"))
	})
	bubble(t, "what it needs comes first", func(t *testing.T) {
		w := engine(t, nil)
		a, b := takes(s), takes(s)
		nodes := []node{work("a", "x", a), work("b", "x", b)}
		nodes[1].Need = ids("a")
		w.step("k", nodes...)
		w.pass(2 * s)
		require.Empty(t, b.Runs(), "nobody stepped")
		w.step("k", nodes...)
		require.Len(t, b.Runs(), 1)
	})
	bubble(t, "deliver sees the moved memo and may step", func(t *testing.T) {
		var e *dag.Engine[string, int]
		b := takes(s)
		e = dag.New(nil, func(k string, stage dag.ID, _ int, _ error) {
			require.Equal(t, dag.Done, e.Memo(k)[stage].State)
			if stage == id("a") {
				e.Step(k, graph(work("a", "x", takes(0)), work("b", "x", b)))
			}
		}, dag.Options[string]{Validate: true})
		e.Step("k", graph(work("a", "x", takes(s))))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, e.Run(ctx))
		require.Len(t, b.Runs(), 1)
	})
	bubble(t, "observers give a run its context", func(t *testing.T) {
		type name struct{}
		var got any
		e := dag.New(nil, func(string, dag.ID, int, error) {}, dag.Options[string]{Observer: dag.Tee[string](
			dag.NopObserver[string]{}, contextWith{func(ctx context.Context, k string, stage dag.ID) context.Context {
				return context.WithValue(ctx, name{}, k+"/"+stage.Kind)
			}})})
		e.Step("k", graph(node{ID: id("a"), Key: key("x"), Run: func(ctx context.Context) (int, error) {
			got = ctx.Value(name{})
			return 0, nil
		}}))
		ctx, cancel := context.WithTimeout(t.Context(), s)
		defer cancel()
		require.NoError(t, e.Run(ctx))
		require.Equal(t, "k/a", got)
	})
}

type contextWith struct {
	context func(ctx context.Context, k string, stage dag.ID) context.Context
}

func (contextWith) Moved(string, dag.ID, dag.Entry, dag.Entry) {}
func (c contextWith) Context(ctx context.Context, k string, stage dag.ID) context.Context {
	return c.context(ctx, k, stage)
}

func TestMemosAreSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := engine(t, nil)
		stepped, _ := w.Step("k", graph(work("a", "x", takes(s))))
		asked := w.Memo("k")
		before := maps.Clone(stepped)
		w.pass(s)
		require.Equal(t, dag.Done, w.state("k", "a"))
		require.Equal(t, before, stepped)
		require.Equal(t, before, asked)
		require.Nil(t, w.Memo("nobody"))
	})
}

func TestCancel(t *testing.T) {
	bubble(t, "another key: the run loses its context, no failure, and the new one starts", func(t *testing.T) {
		w := engine(t, nil)
		a := takes(time.Hour)
		w.step("k", work("a", "x", a))
		w.pass(s)
		w.step("k", work("a", "y", a))
		require.ErrorIs(t, a.Runs()[0].Cause, dag.ErrSuperseded)
		require.Equal(t, dag.Entry{State: dag.Waiting, Since: time.Now()}, w.Memo("k")[id("a")])
		require.ErrorIs(t, w.deliveries()[0].err, dag.ErrSuperseded)
		w.step("k", work("a", "y", a))
		require.Len(t, a.Runs(), 2)
		require.Equal(t, 1, w.Memo("k")[id("a")].Attempt)
	})
	bubble(t, "cancelled and succeeded: done with the key it had", func(t *testing.T) {
		w := engine(t, nil)
		w.step("k", work("a", "x", deaf(2*s)))
		w.step("k", work("a", "y", takes(s)))
		require.Equal(t, dag.Running, w.state("k", "a"), "nothing beside it")
		w.pass(2 * s)
		require.Equal(t, dag.Done, w.state("k", "a"))
		require.Equal(t, key("x"), w.Memo("k")[id("a")].Key)
	})
	bubble(t, "the graph lacks it: it is cancelled and then forgotten", func(t *testing.T) {
		w := engine(t, nil)
		a := takes(time.Hour)
		w.step("k", work("a", "x", a))
		w.step("k")
		require.ErrorIs(t, a.Runs()[0].Cause, dag.ErrSuperseded)
		require.Empty(t, w.step("k"))
	})
	bubble(t, "an atomic run ends by itself", func(t *testing.T) {
		w := engine(t, nil)
		a := takes(5 * s)
		n := work("a", "x", a)
		n.Atomic = true
		w.step("k", n)
		w.step("k")
		require.Equal(t, dag.Running, w.state("k", "a"))
		w.pass(5 * s)
		require.NoError(t, a.Runs()[0].Cause)
		require.Equal(t, dag.Done, w.state("k", "a"))
	})
	bubble(t, "queued: it leaves the queue", func(t *testing.T) {
		w := engine(t, dag.Policy{"c": {Slots: 1}})
		a, b := takes(5*s), takes(s)
		w.step("k1", node{ID: id("a"), Key: key("x"), Class: "c", Run: a.Run})
		w.step("k2", node{ID: id("b"), Key: key("x"), Class: "c", Run: b.Run})
		w.step("k2")
		w.pass(time.Minute)
		require.Empty(t, b.Runs())
		require.Empty(t, w.queue("c").Waiting)
	})
}

func TestFailures(t *testing.T) {
	policy := dag.Policy{"": {Backoff: dag.Backoff{Initial: 10 * s, Max: 25 * s}}}
	tests := map[string]struct {
		err   error
		want  time.Duration // after the failure
		never bool
	}{
		"plain":                {err: errPull, want: 10 * s},
		"own delay":            {err: dag.RetryAfter(errPull, 3*s), want: 3 * s},
		"own delay of nothing": {err: dag.RetryAfter(errPull, 0), want: 0},
		"terminal":             {err: dag.Terminal(errPull), never: true},
		"wrapped terminal":     {err: fmt.Errorf("image web: %w", dag.Terminal(errPull)), never: true},
		"terminal wins":        {err: dag.RetryAfter(dag.Terminal(errPull), s), never: true},
	}
	for name, tt := range tests {
		bubble(t, name, func(t *testing.T) {
			w := engine(t, policy)
			a := work("a", "x", fails(tt.err))
			w.step("k", a)
			e := w.Memo("k")[id("a")]
			require.Equal(t, dag.Failed, e.State)
			require.ErrorIs(t, e.Err, errPull)
			require.Equal(t, tt.never, e.Until.IsZero())
			if !tt.never {
				require.Equal(t, w.start.Add(tt.want), e.Until)
			}
		})
	}
	bubble(t, "tried again exactly when the back-off is over", func(t *testing.T) {
		w := engine(t, policy)
		a := fails(errPull)
		next := time.Now()
		for n := range 5 {
			time.Sleep(time.Until(next) - 1)
			w.step("k", work("a", "x", a))
			require.Len(t, a.Runs(), max(n, 1), "not a nanosecond early")
			w.pass(1)
			w.step("k", work("a", "x", a))
			require.Len(t, a.Runs(), n+1)
			_, next = w.Step("k", graph(work("a", "x", a)))
		}
		var starts []time.Duration
		for _, r := range a.Runs() {
			starts = append(starts, r.Start.Sub(w.start))
		}
		require.Equal(t, []time.Duration{0, 10 * s, 30 * s, 55 * s, 80 * s}, starts)
		require.Equal(t, 5, w.Memo("k")[id("a")].Attempt)
	})
	bubble(t, "another key forgets the failures", func(t *testing.T) {
		w := engine(t, policy)
		a := fails(errPull)
		w.step("k", work("a", "x", a))
		w.step("k", work("a", "y", a))
		require.Len(t, a.Runs(), 2)
		require.Equal(t, 1, w.Memo("k")[id("a")].Attempt)
	})
}

func TestForget(t *testing.T) {
	bubble(t, "queued work leaves, the memo is gone", func(t *testing.T) {
		w := engine(t, dag.Policy{"": {Slots: 1}})
		w.step("k1", work("a", "x", takes(s)))
		b := takes(s)
		w.step("k2", work("b", "x", b))
		require.True(t, w.Forget("k2"))
		require.Nil(t, w.Memo("k2"))
		moves := w.recorder.Moves()
		require.Zero(t, moves[len(moves)-1].To)
		w.pass(time.Minute)
		require.Empty(t, b.Runs())
	})
	bubble(t, "not while work is in flight", func(t *testing.T) {
		w := engine(t, nil)
		w.step("k", work("a", "x", takes(s)))
		require.False(t, w.Forget("k"))
		w.pass(s)
		require.True(t, w.Forget("k"))
		require.True(t, w.Forget("k"), "nothing to forget")
	})
}

// The facts of a run may miss the graph of the step that comes next: that
// step must not draw conclusions from it about the object that was changed.
func TestFactsOnTheirWay(t *testing.T) {
	bubble(t, "what needs the stage waits a step longer", func(t *testing.T) {
		w := engine(t, nil)
		a, b := work("a", "x", takes(s)), work("b", "with the facts of a", takes(s))
		b.Need = ids("a")
		w.step("k", a, b)
		w.pass(s)
		memo, next := w.Step("k", graph(a, b))
		require.Equal(t, dag.Waiting, memo[id("b")].State)
		require.Equal(t, time.Now(), next)
		memo, next = w.Step("k", graph(a, b))
		require.Equal(t, dag.Running, memo[id("b")].State)
		require.Zero(t, next)
		w.pass(s)
	})
	bubble(t, "its own facts keep nobody from being done", func(t *testing.T) {
		w := engine(t, nil)
		a := work("a", "create", takes(s))
		a.Owns = "c1"
		w.step("k", a)
		w.pass(s)
		memo, next := w.Step("k", graph(node{ID: id("a"), Owns: "c1"}))
		require.Equal(t, dag.Done, memo[id("a")].State)
		require.Zero(t, next)
	})
	bubble(t, "a builder that counts ends is believed", func(t *testing.T) {
		w := engine(t, nil)
		a, b, c := work("a", "x", takes(s)), work("b", "x", takes(s)), work("c", "with the facts of b", takes(s))
		b.Need, c.Need = ids("a"), ids("b")
		step := func(ends uint64) (dag.Memo, time.Time) {
			g := graph(a, b, c)
			g.Ends = ends
			return w.Step("k", g)
		}
		step(0)
		w.pass(s)
		memo, next := step(1)
		require.Equal(t, dag.Running, memo[id("b")].State, "it knows the facts of a")
		require.Zero(t, next)
		w.pass(s)
		for range 3 {
			memo, next = step(1)
			require.Equal(t, dag.Waiting, memo[id("c")].State, "it says that it lacks those of b")
			require.Zero(t, next, "they make it step again")
		}
		memo, _ = step(2)
		require.Equal(t, dag.Running, memo[id("c")].State)
		w.pass(s)

		require.True(t, w.Forget("k"), "the engine forgets, the builder counts on")
		step(3)
		w.pass(s)
		memo, _ = step(3)
		require.Equal(t, dag.Waiting, memo[id("b")].State)
		memo, _ = step(4)
		require.Equal(t, dag.Running, memo[id("b")].State)
		w.pass(s)
	})
	create := node{ID: id("create"), Key: key("x"), Owns: "c1", Atomic: true, Run: takes(s).Run}
	stop := node{ID: id("stop"), Owns: "c1"} // by a state in which c1 is not there
	remove := node{ID: id("remove"), Key: key("y"), Need: ids("stop"), Run: takes(s).Run}
	synctest.Test(t, func(t *testing.T) {
		w := engine(t, nil)
		w.step("k", create)
		w.step("k", stop, remove)
		require.Equal(t, dag.Waiting, w.state("k", "stop"))
		w.pass(s)
		require.Equal(t, dag.Done, w.state("k", "create"))

		memo, next := w.Step("k", graph(stop, remove))
		require.Equal(t, dag.Waiting, memo[id("stop")].State, "built without the facts of create")
		require.Equal(t, time.Now(), next, "step again at once")
		synctest.Wait()

		stop.Key, stop.Run = key("stop c1"), takes(s).Run // by now they are folded
		memo, next = w.Step("k", graph(stop, remove))
		require.Equal(t, dag.Running, memo[id("stop")].State)
		require.Equal(t, dag.Waiting, memo[id("remove")].State)
		require.Zero(t, next)
	})
}

func TestTerminalStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := engine(t, nil)
		a := fails(dag.Terminal(errPull))
		for range 100 {
			w.step("k", work("a", "x", a))
			w.pass(time.Hour)
		}
		require.Len(t, a.Runs(), 1)
	})
}
