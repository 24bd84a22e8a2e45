package dag_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/dag"
)

// The tests of Decide look at one moment: what was (entries of the memo), what
// is wanted (nodes), and what follows. All old entries are from t0.
var (
	t0   = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	now  = t0.Add(time.Minute)
	past = t0.Add(30 * time.Second)
	soon = now.Add(time.Second)
	late = now.Add(time.Hour)

	errPull = errors.New("pull: no route to host")
)

func id(kind string) dag.ID { return dag.ID{Kind: kind} }
func ids(kinds ...string) []dag.ID {
	var all []dag.ID
	for _, kind := range kinds {
		all = append(all, id(kind))
	}
	return all
}
func key(do string) dag.Key { return dag.Key{Do: do} }

type node = dag.Node[int]

func graph(nodes ...node) *dag.Graph[int] {
	g := &dag.Graph[int]{}
	for _, n := range nodes {
		g.Add(n)
	}
	return g
}

// was returns an entry that began at t0.
func was(state dag.State, do string, more ...func(*dag.Entry)) dag.Entry {
	return with(dag.Entry{Key: key(do), State: state, Since: t0}, more)
}

// is returns an entry that begins now.
func is(state dag.State, do string, more ...func(*dag.Entry)) dag.Entry {
	return with(dag.Entry{Key: key(do), State: state, Since: now}, more)
}

func with(e dag.Entry, more []func(*dag.Entry)) dag.Entry {
	if e.Key.Do == "" {
		e.Key = dag.Key{}
	}
	for _, set := range more {
		set(&e)
	}
	return e
}

func on(kinds ...string) func(*dag.Entry) { return func(e *dag.Entry) { e.On = ids(kinds...) } }
func until(t time.Time) func(*dag.Entry)  { return func(e *dag.Entry) { e.Until = t } }
func why(why string) func(*dag.Entry)     { return func(e *dag.Entry) { e.Why = why } }
func owns(object string) func(*dag.Entry) { return func(e *dag.Entry) { e.Owns = object } }
func attempt(n int) func(*dag.Entry)      { return func(e *dag.Entry) { e.Attempt = n } }
func failed(err error, n int) func(*dag.Entry) {
	return func(e *dag.Entry) { e.Err, e.Attempt = err, n }
}
func isAtomic(e *dag.Entry) { e.Atomic = true }

func TestDecide(t *testing.T) {
	type want struct {
		out           dag.Memo
		start, cancel []dag.ID
		next          time.Time
	}
	a := id("a")
	b := id("b")
	tests := map[string]struct {
		memo  dag.Memo
		graph *dag.Graph[int]
		want  want
	}{
		"nothing to do is done": {
			graph: graph(node{ID: a}),
			want:  want{out: dag.Memo{a: is(dag.Done, "")}},
		},
		"something to do starts": {
			graph: graph(node{ID: a, Key: key("x"), Owns: "o", Class: "c", Atomic: true}),
			want: want{
				out:   dag.Memo{a: is(dag.Queued, "x", owns("o"), isAtomic, func(e *dag.Entry) { e.Class = "c" })},
				start: ids("a"),
			},
		},
		"roots start side by side, in graph order": {
			graph: graph(node{ID: b, Key: key("x")}, node{ID: a, Key: key("x")}),
			want:  want{out: dag.Memo{a: is(dag.Queued, "x"), b: is(dag.Queued, "x")}, start: ids("b", "a")},
		},

		// Done.
		"done with the same key stays done, whatever its needs": {
			memo:  dag.Memo{a: was(dag.Failed, "x", failed(errPull, 1)), b: was(dag.Done, "y", attempt(1))},
			graph: graph(node{ID: a, Key: key("x")}, node{ID: b, Key: key("y"), Need: ids("a")}),
			want:  want{out: dag.Memo{a: was(dag.Failed, "x", failed(errPull, 1)), b: was(dag.Done, "y", attempt(1))}},
		},
		"done with another key starts from attempt 0": {
			memo:  dag.Memo{a: was(dag.Done, "x", attempt(3))},
			graph: graph(node{ID: a, Key: key("y")}),
			want:  want{out: dag.Memo{a: is(dag.Queued, "y")}, start: ids("a")},
		},
		"done, then nothing to do": {
			memo:  dag.Memo{a: was(dag.Done, "x", attempt(3))},
			graph: graph(node{ID: a}),
			want:  want{out: dag.Memo{a: is(dag.Done, "")}},
		},

		// Needs and order.
		"need failed: waits": {
			memo:  dag.Memo{a: was(dag.Failed, "x", failed(errPull, 1), until(late))},
			graph: graph(node{ID: a, Key: key("x")}, node{ID: b, Key: key("y"), Need: ids("a")}),
			want: want{
				out:  dag.Memo{a: was(dag.Failed, "x", failed(errPull, 1), until(late)), b: is(dag.Waiting, "y", on("a"))},
				next: late,
			},
		},
		"need lost: waits": {
			memo:  dag.Memo{a: was(dag.Lost, "x")},
			graph: graph(node{ID: a, Key: key("x")}, node{ID: b, Key: key("y"), Need: ids("a")}),
			want:  want{out: dag.Memo{a: was(dag.Lost, "x"), b: is(dag.Waiting, "y", on("a"))}},
		},
		"need held: waits": {
			graph: graph(node{ID: a, Key: key("x"), Hold: dag.Hold{Why: "crash loop", Until: soon}}, node{ID: b, Key: key("y"), Need: ids("a")}),
			want: want{
				out:  dag.Memo{a: is(dag.Held, "x", why("crash loop"), until(soon)), b: is(dag.Waiting, "y", on("a"))},
				next: soon,
			},
		},
		"needs started by this step: waits for those": {
			memo:  dag.Memo{id("c"): was(dag.Done, "z")},
			graph: graph(node{ID: id("c"), Key: key("z")}, node{ID: a, Key: key("x")}, node{ID: b, Key: key("y"), Need: ids("c", "a")}),
			want: want{
				out:   dag.Memo{id("c"): was(dag.Done, "z"), a: is(dag.Queued, "x"), b: is(dag.Waiting, "y", on("a"))},
				start: ids("a"),
			},
		},
		"need done: starts": {
			memo:  dag.Memo{a: was(dag.Done, "x"), b: was(dag.Waiting, "y", on("a"))},
			graph: graph(node{ID: a, Key: key("x")}, node{ID: b, Key: key("y"), Need: ids("a")}),
			want:  want{out: dag.Memo{a: was(dag.Done, "x"), b: is(dag.Queued, "y")}, start: ids("b")},
		},
		"waits on as before: nothing changes": {
			memo:  dag.Memo{a: was(dag.Running, "x"), b: was(dag.Waiting, "y", on("a"))},
			graph: graph(node{ID: a, Key: key("x")}, node{ID: b, Key: key("y"), Need: ids("a")}),
			want:  want{out: dag.Memo{a: was(dag.Running, "x"), b: was(dag.Waiting, "y", on("a"))}},
		},
		"after one that runs: waits": {
			memo:  dag.Memo{a: was(dag.Running, "x")},
			graph: graph(node{ID: a, Key: key("x")}, node{ID: b, Key: key("y"), After: ids("a")}),
			want:  want{out: dag.Memo{a: was(dag.Running, "x"), b: is(dag.Waiting, "y", on("a"))}},
		},
		"after one that this step starts: waits": {
			graph: graph(node{ID: a, Key: key("x")}, node{ID: b, Key: key("y"), After: ids("a")}),
			want:  want{out: dag.Memo{a: is(dag.Queued, "x"), b: is(dag.Waiting, "y", on("a"))}, start: ids("a")},
		},
		"after lost, failed, held, waiting and done: starts": {
			memo: dag.Memo{
				id("lost"): was(dag.Lost, "x"), id("failed"): was(dag.Failed, "x", failed(errPull, 1)),
				id("held"): was(dag.Held, "x", why("w")), id("waiting"): was(dag.Waiting, "x", on("lost")), id("done"): was(dag.Done, "x"),
			},
			graph: graph(
				node{ID: id("lost"), Key: key("x")}, node{ID: id("failed"), Key: key("x")}, node{ID: id("held"), Key: key("x"), Hold: dag.Hold{Why: "w"}},
				node{ID: id("waiting"), Key: key("x"), Need: ids("lost")}, node{ID: id("done"), Key: key("x")},
				node{ID: b, Key: key("y"), After: ids("lost", "failed", "held", "waiting", "done")}),
			want: want{
				out: dag.Memo{
					id("lost"): was(dag.Lost, "x"), id("failed"): was(dag.Failed, "x", failed(errPull, 1)),
					id("held"): was(dag.Held, "x", why("w")), id("waiting"): was(dag.Waiting, "x", on("lost")), id("done"): was(dag.Done, "x"),
					b: is(dag.Queued, "y"),
				},
				start: ids("b"),
			},
		},

		// Holds.
		"hold without end: held until the facts change": {
			graph: graph(node{ID: a, Key: key("x"), Hold: dag.Hold{Why: "no room"}}),
			want:  want{out: dag.Memo{a: is(dag.Held, "x", why("no room"))}},
		},
		"hold over: starts": {
			memo:  dag.Memo{a: was(dag.Held, "x", why("crash loop"), until(now))},
			graph: graph(node{ID: a, Key: key("x"), Hold: dag.Hold{Why: "crash loop", Until: now}}),
			want:  want{out: dag.Memo{a: is(dag.Queued, "x")}, start: ids("a")},
		},
		"hold does not touch what runs": {
			memo:  dag.Memo{a: was(dag.Running, "x")},
			graph: graph(node{ID: a, Key: key("x"), Hold: dag.Hold{Why: "no room"}}),
			want:  want{out: dag.Memo{a: was(dag.Running, "x")}},
		},
		"next is the earliest of holds and back-offs": {
			memo:  dag.Memo{b: was(dag.Failed, "y", failed(errPull, 1), until(soon))},
			graph: graph(node{ID: a, Key: key("x"), Hold: dag.Hold{Why: "w", Until: late}}, node{ID: b, Key: key("y")}),
			want: want{
				out:  dag.Memo{a: is(dag.Held, "x", why("w"), until(late)), b: was(dag.Failed, "y", failed(errPull, 1), until(soon))},
				next: soon,
			},
		},

		// Failures.
		"back-off over: starts, the count goes on": {
			memo:  dag.Memo{a: was(dag.Failed, "x", failed(errPull, 2), until(now))},
			graph: graph(node{ID: a, Key: key("x")}),
			want:  want{out: dag.Memo{a: is(dag.Queued, "x", failed(errPull, 2))}, start: ids("a")},
		},
		"back-off over, need gone: waits, the count goes on": {
			memo:  dag.Memo{a: was(dag.Running, "n"), b: was(dag.Failed, "x", failed(errPull, 2), until(past))},
			graph: graph(node{ID: a, Key: key("n")}, node{ID: b, Key: key("x"), Need: ids("a")}),
			want:  want{out: dag.Memo{a: was(dag.Running, "n"), b: is(dag.Waiting, "x", failed(errPull, 2), on("a"))}},
		},
		"terminal failure stays": {
			memo:  dag.Memo{a: was(dag.Failed, "x", failed(errPull, 2))},
			graph: graph(node{ID: a, Key: key("x")}),
			want:  want{out: dag.Memo{a: was(dag.Failed, "x", failed(errPull, 2))}},
		},
		"another key drops the back-off": {
			memo:  dag.Memo{a: was(dag.Failed, "x", failed(errPull, 2), until(late))},
			graph: graph(node{ID: a, Key: key("y")}),
			want:  want{out: dag.Memo{a: is(dag.Queued, "y")}, start: ids("a")},
		},
		"failed, then nothing to do": {
			memo:  dag.Memo{a: was(dag.Failed, "x", failed(errPull, 2), until(late))},
			graph: graph(node{ID: a}),
			want:  want{out: dag.Memo{a: is(dag.Done, "")}},
		},

		// In flight.
		"running with another key: cancelled, stays until it ends": {
			memo:  dag.Memo{a: was(dag.Running, "x", until(late))},
			graph: graph(node{ID: a, Key: key("y")}),
			want:  want{out: dag.Memo{a: was(dag.Running, "x", until(late))}, cancel: ids("a")},
		},
		"running with nothing to do any more: cancelled": {
			memo:  dag.Memo{a: was(dag.Running, "x")},
			graph: graph(node{ID: a}),
			want:  want{out: dag.Memo{a: was(dag.Running, "x")}, cancel: ids("a")},
		},
		"running atomic with another key: ends by itself": {
			memo:  dag.Memo{a: was(dag.Running, "x", isAtomic)},
			graph: graph(node{ID: a, Key: key("y")}),
			want:  want{out: dag.Memo{a: was(dag.Running, "x", isAtomic)}},
		},
		"lost with another key: nothing beside it": {
			memo:  dag.Memo{a: was(dag.Lost, "x")},
			graph: graph(node{ID: a, Key: key("y")}),
			want:  want{out: dag.Memo{a: was(dag.Lost, "x")}},
		},

		// Queued.
		"queued stays queued": {
			memo:  dag.Memo{a: was(dag.Queued, "x")},
			graph: graph(node{ID: a, Key: key("x")}),
			want:  want{out: dag.Memo{a: was(dag.Queued, "x")}},
		},
		"queued with another key: leaves and joins again": {
			memo:  dag.Memo{a: was(dag.Queued, "x")},
			graph: graph(node{ID: a, Key: key("y")}),
			want:  want{out: dag.Memo{a: is(dag.Queued, "y")}, start: ids("a"), cancel: ids("a")},
		},
		"queued with another class: leaves and joins again": {
			memo:  dag.Memo{a: was(dag.Queued, "x")},
			graph: graph(node{ID: a, Key: key("x"), Class: "c"}),
			want: want{
				out:   dag.Memo{a: is(dag.Queued, "x", func(e *dag.Entry) { e.Class = "c" })},
				start: ids("a"), cancel: ids("a"),
			},
		},
		"queued, then nothing to do: leaves": {
			memo:  dag.Memo{a: was(dag.Queued, "x")},
			graph: graph(node{ID: a}),
			want:  want{out: dag.Memo{a: is(dag.Done, "")}, cancel: ids("a")},
		},
		"queued, then held: leaves": {
			memo:  dag.Memo{a: was(dag.Queued, "x", failed(errPull, 1))},
			graph: graph(node{ID: a, Key: key("x"), Hold: dag.Hold{Why: "no room"}}),
			want:  want{out: dag.Memo{a: is(dag.Held, "x", failed(errPull, 1), why("no room"))}, cancel: ids("a")},
		},

		// Objects.
		"object of an earlier stage that starts now: waits": {
			graph: graph(node{ID: a, Key: key("x"), Owns: "o"}, node{ID: b, Key: key("y"), Owns: "o"}),
			want: want{
				out:   dag.Memo{a: is(dag.Queued, "x", owns("o")), b: is(dag.Waiting, "y", on("a"), owns("o"), why("o"))},
				start: ids("a"),
			},
		},
		"object of a later stage in flight: waits": {
			memo:  dag.Memo{b: was(dag.Running, "y", owns("o"))},
			graph: graph(node{ID: a, Key: key("x"), Owns: "o"}, node{ID: b, Key: key("y"), Owns: "o"}),
			want:  want{out: dag.Memo{a: is(dag.Waiting, "x", on("b"), owns("o"), why("o")), b: was(dag.Running, "y", owns("o"))}},
		},
		"object of a lost stage: waits": {
			memo:  dag.Memo{b: was(dag.Lost, "y", owns("o"))},
			graph: graph(node{ID: a, Key: key("x"), Owns: "o"}, node{ID: b, Owns: "o"}),
			want:  want{out: dag.Memo{a: is(dag.Waiting, "x", on("b"), owns("o"), why("o")), b: was(dag.Lost, "y", owns("o"))}},
		},
		"earlier stage takes the object from a later queued one": {
			memo:  dag.Memo{b: was(dag.Queued, "y", owns("o"))},
			graph: graph(node{ID: a, Key: key("x"), Owns: "o"}, node{ID: b, Key: key("y"), Owns: "o"}),
			want: want{
				out:   dag.Memo{a: is(dag.Queued, "x", owns("o")), b: is(dag.Waiting, "y", on("a"), owns("o"), why("o"))},
				start: ids("a"), cancel: ids("b"),
			},
		},
		"nothing to do, object in flight: nobody knows yet": {
			memo:  dag.Memo{a: was(dag.Running, "create", owns("o"), isAtomic)},
			graph: graph(node{ID: b, Owns: "o"}),
			want: want{out: dag.Memo{
				a: was(dag.Running, "create", owns("o"), isAtomic),
				b: is(dag.Waiting, "", on("a"), owns("o"), why("o")),
			}},
		},
		"nothing to do, object only queued: done": {
			graph: graph(node{ID: a, Key: key("x"), Owns: "o"}, node{ID: b, Owns: "o"}),
			want: want{
				out:   dag.Memo{a: is(dag.Queued, "x", owns("o")), b: is(dag.Done, "", owns("o"))},
				start: ids("a"),
			},
		},
		"nothing to do, object free again: done": {
			memo:  dag.Memo{b: was(dag.Waiting, "", on("a"), owns("o"), why("o"))},
			graph: graph(node{ID: b, Owns: "o"}),
			want:  want{out: dag.Memo{b: is(dag.Done, "", owns("o"))}},
		},

		// Stages that the graph lacks.
		"gone from the graph": {
			memo: dag.Memo{
				id("running"): was(dag.Running, "x"), id("atomic"): was(dag.Running, "x", isAtomic), id("lost"): was(dag.Lost, "x"),
				id("queued"): was(dag.Queued, "x"), id("done"): was(dag.Done, "x"), id("failed"): was(dag.Failed, "x", failed(errPull, 1), until(late)),
			},
			graph: graph(),
			want: want{
				out: dag.Memo{
					id("running"): was(dag.Running, "x"), id("atomic"): was(dag.Running, "x", isAtomic), id("lost"): was(dag.Lost, "x"),
				},
				cancel: ids("queued", "running"),
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got want
			before := clone(tt.memo)
			got.out, got.start, got.cancel, got.next = dag.Decide(now, tt.memo, tt.graph)
			diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(want{}), cmpopts.EquateErrors(), cmpopts.EquateEmpty())
			require.Empty(t, diff, "-want +got")
			require.Equal(t, before, tt.memo, "the old memo was changed")
		})
	}
}
