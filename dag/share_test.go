package dag_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/dag/dagtest"
)

// pulls is an engine of keys that all want the same shared run.
type pulls struct {
	t      *testing.T
	engine *dag.Engine[string, int]

	mu        sync.Mutex
	begun     int
	causes    []error
	delivered map[string]error
}

func newPulls(t *testing.T, slots int) *pulls {
	p := &pulls{t: t, delivered: map[string]error{}}
	p.engine = dag.New(dag.Policy{"pull": {Slots: slots}}, func(k string, _ dag.ID, _ int, err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.delivered[k] = err
	}, dag.Options[string]{Validate: true})
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error)
	go func() { done <- p.engine.Run(ctx) }()
	t.Cleanup(func() {
		cancel(errors.New("end of test"))
		require.NoError(t, <-done)
	})
	synctest.Wait()
	return p
}

func (p *pulls) want(k, image string, priority int) dag.Entry {
	g := &dag.Graph[int]{Priority: priority}
	id := g.Add(dag.Node[int]{
		ID: dag.ID{Kind: "image"}, Key: dag.Key{Do: "pull"}, Class: "pull", Share: image,
		Run: func(ctx context.Context) (int, error) {
			p.mu.Lock()
			p.begun++
			p.mu.Unlock()
			select {
			case <-time.After(time.Minute):
				return 1, nil
			case <-ctx.Done():
				p.mu.Lock()
				p.causes = append(p.causes, context.Cause(ctx))
				p.mu.Unlock()
				return 0, context.Cause(ctx)
			}
		},
	})
	m, _ := p.engine.Step(k, g)
	synctest.Wait()
	return m[id]
}

func (p *pulls) runs() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun
}

func (p *pulls) leave(k string) {
	p.engine.Step(k, &dag.Graph[int]{})
	synctest.Wait()
}

func TestSharedRunIsOneForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPulls(t, 1)
		require.Equal(t, dag.Running, p.want("a", "x", 0).State)
		e := p.want("b", "x", 0)
		require.Equal(t, dag.Running, e.State)
		require.Equal(t, "joined the run of a", e.Why)
		require.Equal(t, dag.Queued, p.want("c", "y", 0).State, "another one needs a slot of its own")
		require.Equal(t, 1, p.runs())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, map[string]error{"a": nil, "b": nil}, p.delivered)
		require.Equal(t, dag.Done, p.engine.Memo("b")[dag.ID{Kind: "image"}].State)
		require.Equal(t, 2, p.runs())
	})
}

func TestSharedRunGoesOnUntilTheLastHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPulls(t, 1)
		p.want("a", "x", 0)
		p.want("b", "x", 0)
		p.want("c", "x", 0)
		p.leave("a")
		p.leave("c")
		require.Empty(t, p.causes)
		require.True(t, p.engine.Forget("a"))
		p.leave("b")
		require.Len(t, p.causes, 1)
		require.ErrorIs(t, p.causes[0], dag.ErrSuperseded)
		require.NotContains(t, p.delivered, "a")
		require.NotContains(t, p.delivered, "c")
	})
}

func TestSharedRunIsDeliveredToWhoTookOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPulls(t, 1)
		p.want("a", "x", 0)
		p.want("b", "x", 0)
		p.leave("a")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, map[string]error{"b": nil}, p.delivered)
	})
}

func TestSharedRunWaitsWhereTheMostUrgentOfThemBelongs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPulls(t, 1)
		p.want("first", "w", 0)
		p.want("a", "x", 0)
		p.want("b", "y", 5)
		require.Equal(t, dag.Queued, p.want("c", "x", 9).State)
		q := p.engine.Queues()[0]
		require.Equal(t, "a", q.Waiting[0].Key)
		require.Equal(t, "c", q.Waiting[0].Joined[0].Key)
		p.leave("c")
		require.Equal(t, "b", p.engine.Queues()[0].Waiting[0].Key)
	})
}

func TestSharedRunIsNeverBesideItself(t *testing.T) {
	share := func(stage string, w node) node {
		w.ID, w.Share, w.Class = id(stage), "x", "pull"
		return w
	}
	bubble(t, "one that is about to end: the next waits for it", func(t *testing.T) {
		w := engine(t, dag.Policy{"pull": {}})
		first, second := deaf(10*s), takes(s)
		w.step("a", share("image", work("", "pull", first)))
		w.step("a")
		w.step("b", share("image", work("", "pull", second)))
		require.Equal(t, dag.Queued, w.state("b", "image"))
		waiter := w.queue("pull").Waiting[0]
		require.Equal(t, "x", waiter.Object)
		require.Equal(t, &dag.Ref[string]{Key: "a", ID: id("image")}, waiter.Owner)
		w.pass(10 * s)
		require.Len(t, second.Runs(), 1)
	})
	bubble(t, "a lost one: the next waits until it comes back", func(t *testing.T) {
		w := engine(t, dag.Policy{"pull": {Deadline: 10 * s}})
		first, second := deaf(time.Hour), takes(s)
		w.step("a", share("image", work("", "pull", first)))
		w.pass(time.Minute)
		require.Equal(t, dag.Lost, w.state("a", "image"))
		w.step("b", share("image", work("", "pull", second)))
		require.Equal(t, dag.Queued, w.state("b", "image"))
		w.pass(time.Hour)
		require.Len(t, second.Runs(), 1)
	})
	bubble(t, "two stages of one key share it too", func(t *testing.T) {
		w := engine(t, nil)
		a, b := takes(s), takes(s)
		w.step("k", share("a", work("", "pull", a)), share("b", work("", "pull", b)))
		w.pass(s)
		require.Len(t, append(a.Runs(), b.Runs()...), 1)
		require.Equal(t, dag.Done, w.state("k", "a"))
		require.Equal(t, dag.Done, w.state("k", "b"))
		require.Len(t, w.deliveries(), 2)
	})
}

func TestSharedFailureIsEachOnesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := engine(t, dag.Policy{"": {Backoff: dag.Backoff{Initial: 10 * s}}})
		pull := work("image", "pull", dagtest.Do(dagtest.Script{Takes: s, Err: errPull}))
		pull.Share = "x"
		w.step("a", pull)
		w.pass(11 * s)
		w.step("a", pull) // its second attempt
		w.step("b", pull) // joins
		w.pass(s)
		a, b := w.Memo("a")[id("image")], w.Memo("b")[id("image")]
		require.Equal(t, 2, a.Attempt)
		require.Equal(t, 20*s, a.Until.Sub(a.Since))
		require.Equal(t, 1, b.Attempt)
		require.Equal(t, 10*s, b.Until.Sub(b.Since))
		require.Empty(t, b.Why)
	})
}

func TestShareAndOwnsExclude(t *testing.T) {
	require.PanicsWithValue(t, "dag: stage image shares its run and owns an object", func() {
		graph(node{ID: id("image"), Share: "x", Owns: "o"})
	})
}
