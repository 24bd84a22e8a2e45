package dag_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/dag/dagtest"
)

func TestDeadline(t *testing.T) {
	policy := dag.Policy{"": {Deadline: 10 * s, Grace: 2 * s, Backoff: dag.Backoff{Initial: time.Minute}}}
	bubble(t, "the context ends with the cause, and the error says so", func(t *testing.T) {
		w := engine(t, policy)
		a := dagtest.Do(dagtest.Script{Takes: time.Hour})
		w.step("k", work("a", "x", a))
		require.Equal(t, w.start.Add(10*s), w.Memo("k")[id("a")].Until)
		w.pass(10 * s)
		require.ErrorIs(t, a.Runs()[0].Cause, dag.ErrDeadline)
		require.ErrorIs(t, w.deliveries()[0].err, dag.ErrDeadline)
		require.Equal(t, dag.Failed, w.state("k", "a"))
		require.Equal(t, w.start.Add(10*s+time.Minute), w.Memo("k")[id("a")].Until)
	})
	bubble(t, "it ends atomic runs too", func(t *testing.T) {
		w := engine(t, policy)
		n := work("a", "x", takes(time.Hour))
		n.Atomic = true
		w.step("k", n)
		w.pass(10 * s)
		require.Equal(t, dag.Failed, w.state("k", "a"))
	})
	bubble(t, "late but within grace is an end like any other", func(t *testing.T) {
		w := engine(t, policy)
		w.step("k", work("a", "x", deaf(12*s-1)))
		w.pass(time.Minute)
		require.Equal(t, []dag.State{dag.Queued, dag.Running, dag.Done}, w.recorder.States("k", id("a")))
	})
	bubble(t, "runs see the deadline", func(t *testing.T) {
		w := engine(t, policy)
		var got time.Time
		w.step("k", node{ID: id("a"), Key: key("x"), Run: func(ctx context.Context) (int, error) {
			got, _ = ctx.Deadline()
			return 0, nil
		}})
		require.Equal(t, w.start.Add(10*s), got)
	})
}

func TestLost(t *testing.T) {
	policy := dag.Policy{"c": {Slots: 1, MaxLost: 2, Deadline: 10 * s, Grace: 2 * s}}
	hang := func(stage, object string, d time.Duration) node {
		return node{ID: id(stage), Key: key("mount"), Class: "c", Owns: object, Atomic: true, Run: deaf(d).Run}
	}
	bubble(t, "the slot is free, the object is not", func(t *testing.T) {
		w := engine(t, policy)
		w.step("k1", hang("a", "nfs", time.Hour))
		w.step("k2", hang("b", "nfs", s))
		w.step("k3", hang("c", "disk", s))
		w.pass(12*s - 1)
		require.Equal(t, dag.Running, w.state("k1", "a"))
		require.Equal(t, dag.Queued, w.state("k3", "c"))
		w.pass(1)
		require.Equal(t, dag.Lost, w.state("k1", "a"))
		require.Equal(t, dag.Running, w.state("k3", "c"))
		require.Equal(t, dag.Queued, w.state("k2", "b"))
		q := w.queue("c")
		require.Equal(t, []dag.InFlight[string]{{
			Ref: dag.Ref[string]{Key: "k1", ID: id("a")}, Task: key("mount"),
			Since: w.start.Add(12 * s), Deadline: w.start.Add(10 * s),
		}}, q.Lost)
		require.False(t, q.Stopped)
		require.Equal(t, &dag.Ref[string]{Key: "k1", ID: id("a")}, q.Waiting[0].Owner)
		w.pass(time.Hour)
		require.Equal(t, dag.Done, w.state("k1", "a"), "it came back")
		require.Equal(t, dag.Done, w.state("k2", "b"), "and its object was free")
		require.Len(t, w.deliveries(), 3)
	})
	bubble(t, "at the limit the class stops, until one comes back", func(t *testing.T) {
		w := engine(t, policy)
		w.step("k1", hang("a", "", 30*s))
		w.step("k2", hang("b", "", time.Hour))
		w.step("k3", hang("c", "", s))
		w.pass(24 * s)
		require.Equal(t, dag.Queued, w.state("k3", "c"))
		q := w.queue("c")
		require.True(t, q.Stopped)
		require.Len(t, q.Lost, 2)
		require.Empty(t, q.Running)
		w.pass(6 * s)
		require.Equal(t, dag.Done, w.state("k1", "a"))
		require.Equal(t, dag.Running, w.state("k3", "c"))
		w.pass(time.Hour)
	})
	bubble(t, "nothing beside it, whatever the graph says", func(t *testing.T) {
		w := engine(t, policy)
		w.step("k1", hang("a", "nfs", time.Hour))
		w.pass(12 * s)
		a := hang("a", "nfs", s)
		a.Key = key("another")
		w.step("k1", a)
		require.Equal(t, dag.Lost, w.state("k1", "a"))
		w.step("k1")
		require.Equal(t, dag.Lost, w.state("k1", "a"))
		require.False(t, w.Forget("k1"))
		w.pass(time.Hour)
		require.Empty(t, w.step("k1"))
		require.True(t, w.Forget("k1"))
	})
	bubble(t, "grace is a second if the class does not say", func(t *testing.T) {
		w := engine(t, dag.Policy{"": {Deadline: s}})
		w.step("k", work("a", "x", deaf(time.Minute)))
		w.pass(time.Minute)
		require.Equal(t, w.start.Add(2*s), w.recorder.When("k", id("a"), dag.Lost))
	})
}
