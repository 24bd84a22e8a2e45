package dag_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/dag/dagtest"
)

// enqueue steps one key with one stage of a class and a priority.
func (w *world) enqueue(k, class string, priority int, stage *dagtest.Stage) {
	g := graph(node{ID: id("a"), Key: key("x"), Class: class, Run: stage.Run})
	g.Priority = priority
	w.stepGraph(k, g)
}

// started returns the keys in the order in which they were started.
func (w *world) started() []string {
	var all []string
	for _, m := range w.recorder.Moves() {
		if m.To.State == dag.Running {
			all = append(all, m.Key)
		}
	}
	return all
}

// waiting returns the keys that wait in a class, in order.
func (w *world) waiting(class string) []string {
	var all []string
	for _, x := range w.queue(class).Waiting {
		all = append(all, x.Key)
	}
	return all
}

func TestSlotsAndOrder(t *testing.T) {
	tests := map[string]struct {
		row  dag.Class
		want []string
	}{
		"by priority": {dag.Class{Slots: 1}, []string{"low1", "high", "mid1", "mid2", "low2"}},
		"by arrival":  {dag.Class{Slots: 1, Order: dag.ByArrival}, []string{"low1", "low2", "mid1", "high", "mid2"}},
		"two slots":   {dag.Class{Slots: 2}, []string{"low1", "low2", "high", "mid1", "mid2"}},
		"no limit":    {dag.Class{}, []string{"low1", "low2", "mid1", "high", "mid2"}},
	}
	for name, tt := range tests {
		bubble(t, name, func(t *testing.T) {
			w := engine(t, dag.Policy{"c": tt.row})
			for _, k := range []string{"low1", "low2", "mid1", "high", "mid2"} {
				priority := map[string]int{"low": 0, "mid": 5, "hig": 9}[k[:3]]
				w.enqueue(k, "c", priority, takes(s))
			}
			w.pass(time.Minute)
			require.Equal(t, tt.want, w.started())
		})
	}
	bubble(t, "a newer graph moves what waits, and brings newer data", func(t *testing.T) {
		w := engine(t, dag.Policy{"c": {Slots: 1}})
		w.enqueue("runs", "c", 0, takes(s))
		w.enqueue("k1", "c", 5, takes(s))
		stale, fresh := takes(s), takes(s)
		w.enqueue("k2", "c", 0, stale)
		require.Equal(t, []string{"k1", "k2"}, w.waiting("c"))
		since := w.Memo("k2")[id("a")].Since
		w.pass(s / 2)
		w.enqueue("k2", "c", 9, fresh)
		require.Equal(t, []string{"k2", "k1"}, w.waiting("c"))
		require.Equal(t, since, w.Memo("k2")[id("a")].Since, "it is the same wait")
		w.pass(time.Minute)
		require.Empty(t, stale.Runs())
		require.Len(t, fresh.Runs(), 1)
	})
	bubble(t, "before Run everything waits", func(t *testing.T) {
		w := stoppedEngine(t, nil)
		a := takes(s)
		w.enqueue("k", "c", 0, a)
		w.pass(s)
		require.Equal(t, dag.Queued, w.state("k", "a"))
		w.run()
		require.Len(t, a.Runs(), 1)
	})
}

func TestRows(t *testing.T) {
	const row, family, rest = 11, 22, 33
	policy := dag.Policy{"image/a": {Slots: row}, "image": {Slots: family}, "": {Slots: rest}}
	tests := map[string]int{
		"image/a": row, "image/b": family, "image/b/c": family, "image": family, "mount": rest, "imagery": rest, "": rest,
	}
	for class, slots := range tests {
		bubble(t, "class "+class, func(t *testing.T) {
			w := engine(t, policy)
			w.enqueue("k", class, 0, takes(s))
			require.Equal(t, slots, w.queue(class).Row.Slots)
		})
	}
	bubble(t, "classes of one row have queues of their own", func(t *testing.T) {
		w := engine(t, dag.Policy{"image": {Slots: 1}})
		w.enqueue("k1", "image/a", 0, takes(s))
		w.enqueue("k2", "image/b", 0, takes(s))
		require.Equal(t, []string{"k1", "k2"}, w.started())
	})
	bubble(t, "rows are shown when idle, other classes only in use", func(t *testing.T) {
		w := engine(t, dag.Policy{"image": {Slots: 1}, "mount": {}})
		w.enqueue("k1", "image/a", 0, takes(s))
		require.Equal(t, []string{"image", "image/a", "mount"}, classes(w.Queues()))
		w.pass(s)
		require.Equal(t, []string{"image", "mount"}, classes(w.Queues()))
	})
}

func classes(queues []dag.Queue[string]) []string {
	var all []string
	for _, q := range queues {
		all = append(all, q.Class)
	}
	return all
}

func TestSetPolicy(t *testing.T) {
	bubble(t, "more slots: those who wait start at once", func(t *testing.T) {
		w := engine(t, dag.Policy{"c": {Slots: 1}})
		for i := range 4 {
			w.enqueue(fmt.Sprint("k", i), "c", 0, takes(time.Minute))
		}
		require.Len(t, w.started(), 1)
		w.SetPolicy(dag.Policy{"c": {Slots: 3}})
		synctest.Wait()
		require.Equal(t, []string{"k0", "k1", "k2"}, w.started())
	})
	bubble(t, "fewer slots: what runs goes on, nothing new starts", func(t *testing.T) {
		w := engine(t, dag.Policy{"c": {Slots: 3}})
		for i := range 5 {
			w.enqueue(fmt.Sprint("k", i), "c", 0, takes(time.Duration(i+1)*s))
		}
		w.SetPolicy(dag.Policy{"c": {Slots: 1}})
		require.Len(t, w.queue("c").Running, 3)
		w.pass(2 * s)
		require.Len(t, w.started(), 3)
		w.pass(s)
		require.Len(t, w.started(), 4)
	})
	bubble(t, "another order sorts again", func(t *testing.T) {
		w := engine(t, dag.Policy{"c": {Slots: 1, Order: dag.ByArrival}})
		for i := range 3 {
			w.enqueue(fmt.Sprint("k", i), "c", i, takes(s))
		}
		require.Equal(t, []string{"k1", "k2"}, w.waiting("c"))
		w.SetPolicy(dag.Policy{"c": {Slots: 1}})
		require.Equal(t, []string{"k2", "k1"}, w.waiting("c"))
	})
}

func TestObjects(t *testing.T) {
	own := func(object string, stage *dagtest.Stage) node {
		return node{ID: id("a"), Key: key("x"), Class: "c", Owns: object, Run: stage.Run}
	}
	bubble(t, "one in flight per object, across keys; others pass by", func(t *testing.T) {
		w := engine(t, dag.Policy{"c": {Slots: 2}, "d": {}})
		w.step("k1", own("disk", takes(10*s)))
		w.step("k2", own("disk", takes(s)))
		w.step("k3", own("other", takes(s)))
		require.Equal(t, []string{"k1", "k3"}, w.started())
		require.Equal(t, []dag.Waiter[string]{{
			Ref: dag.Ref[string]{Key: "k2", ID: id("a")}, Task: key("x"), Since: w.start, Position: 1,
			Object: "disk", Owner: &dag.Ref[string]{Key: "k1", ID: id("a")},
		}}, w.queue("c").Waiting)
		w.pass(10 * s)
		require.Equal(t, []string{"k1", "k3", "k2"}, w.started())
	})
	bubble(t, "a freed object wakes other classes", func(t *testing.T) {
		w := engine(t, nil)
		w.step("k1", own("disk", takes(s)))
		other := own("disk", takes(s))
		other.Class = "d"
		w.step("k2", other)
		require.Equal(t, dag.Queued, w.state("k2", "a"))
		w.pass(s)
		require.Equal(t, dag.Running, w.state("k2", "a"))
	})
	bubble(t, "who was passed over keeps its place", func(t *testing.T) {
		w := engine(t, dag.Policy{"c": {Slots: 1}, "d": {}})
		blocker := own("disk", takes(3*s))
		blocker.Class = "d"
		w.step("k0", blocker)
		w.step("k1", own("disk", takes(s)))
		for i := range 5 {
			w.step(fmt.Sprint("other", i), own("", takes(s+1)))
		}
		w.pass(time.Minute)
		require.Equal(t, []string{"k0", "other0", "other1", "other2", "k1", "other3", "other4"}, w.started())
	})
}

func TestJitter(t *testing.T) {
	until := func(seed uint64) []time.Duration {
		var all []time.Duration
		synctest.Test(t, func(t *testing.T) {
			e := dag.New(dag.Policy{"": {Backoff: dag.Backoff{Initial: 10 * s, Jitter: 0.5}}},
				func(string, dag.ID, int, error) {}, dag.Options[string]{Seed: seed})
			w := &world{Engine: e, t: t, recorder: &dagtest.Recorder[string]{}, start: time.Now()}
			w.run()
			for i := range 20 {
				k := fmt.Sprint("k", i)
				w.step(k, work("a", "x", fails(errPull)))
				all = append(all, w.Memo(k)[id("a")].Until.Sub(w.start))
			}
		})
		return all
	}
	one, again, other := until(1), until(1), until(2)
	require.Equal(t, one, again, "the seed decides")
	require.NotEqual(t, one, other)
	require.GreaterOrEqual(t, slices.Min(one), 10*s)
	require.LessOrEqual(t, slices.Max(one), 15*s)
	require.NotEqual(t, slices.Min(one), slices.Max(one))
}

func TestBackoffDelay(t *testing.T) {
	tests := map[string]struct {
		backoff dag.Backoff
		want    []time.Duration
	}{
		"doubles up to its limit": {dag.Backoff{Initial: 10 * s, Max: 300 * s}, []time.Duration{10 * s, 20 * s, 40 * s, 80 * s, 160 * s, 300 * s, 300 * s}},
		"own factor":              {dag.Backoff{Initial: s, Max: 100 * s, Factor: 3}, []time.Duration{s, 3 * s, 9 * s, 27 * s, 81 * s, 100 * s}},
		"factor 1 is constant":    {dag.Backoff{Initial: s, Factor: 1}, []time.Duration{s, s, s}},
		"limit below the start":   {dag.Backoff{Initial: 10 * s, Max: 3 * s}, []time.Duration{3 * s, 3 * s}},
		"all left open":           {dag.Backoff{}, []time.Duration{s, 2 * s, 4 * s}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for i, want := range tt.want {
				require.Equal(t, want, tt.backoff.Delay(i+1), "failure %d", i+1)
			}
		})
	}
	require.Equal(t, 5*time.Minute, dag.Backoff{}.Delay(1_000_000_000), "soon computed")
}
