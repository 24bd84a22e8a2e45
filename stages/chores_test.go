package stages_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc/pool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/stages"
	"github.com/flowlet/flowlet/stages/graph"
	"github.com/flowlet/flowlet/stages/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sweep is a chore with one stage, which counts in its facts.
type sweep struct {
	took time.Duration
	fail error
	runs []time.Time
}

func (*sweep) Name() string         { return "sweep" }
func (*sweep) Every() time.Duration { return 0 }

func (s *sweep) Stages(in node.In) []node.Stage {
	known, _ := in.Chore.Facts.(int)
	return []node.Stage{{
		ID: dag.ID{Kind: "sweep"}, Key: in.Turn("sweep the floor"), Hold: in.AfterSync(), Atomic: true,
		Run: func(ctx context.Context) (pod.Facts, error) {
			s.runs = append(s.runs, time.Now())
			select {
			case <-time.After(s.took):
			case <-ctx.Done():
			}
			return pod.Facts{pod.Learnt{Facts: known + 1}}, s.fail
		},
	}}
}

func withChore(t *testing.T, c node.Chore, do func(d *stages.Domain, p *stages.Pipeline, s *podstore.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := podstore.New()
		d, p, e := stages.New(stages.Config{
			Graph: &graph.Config{RuntimeSource: "runtime"}, Store: store, Sources: []string{"file"}, Chores: []node.Chore{c},
			Policy: dag.Policy{"": {Slots: 4, Backoff: dag.Backoff{Initial: time.Second}}},
		}, pipeline.Options{})
		ctx, stop := context.WithCancelCause(t.Context())
		run := pool.New().WithContext(ctx)
		run.Go(p.Run)
		run.Go(e.Run)
		do(d, p, store)
		stop(errors.New("the test is over"))
		require.NoError(t, run.Wait())
	})
}

func sync(p *stages.Pipeline, sources ...string) {
	for _, s := range sources {
		p.Emit(stages.Event{Topic: pipeline.Synced(s)})
	}
}

func TestAChoreWaitsForAllThatSaysWhatIsWanted(t *testing.T) {
	c := &sweep{}
	withChore(t, c, func(d *stages.Domain, p *stages.Pipeline, store *podstore.Store) {
		d.Ask("sweep", "crumbs")
		sync(p, "runtime")
		synctest.Wait()
		v, err := store.Find("node/sweep")
		require.NoError(t, err)
		require.Equal(t, "source file has not told all it knows", v.Memo[dag.ID{Kind: "sweep"}].Why)
		require.Equal(t, "crumbs", v.State.Chore.Why)
		require.Len(t, d.Look(time.Now(), v.State).Nodes(), 1, "it can be looked at like a pod")
		sync(p, "file")
		synctest.Wait()
		require.Len(t, c.runs, 1)
		require.Empty(t, store.All(), "no pod")
	})
}

func TestAskingWhileAChoreWorksIsOneMoreTurn(t *testing.T) {
	c := &sweep{took: time.Minute}
	withChore(t, c, func(d *stages.Domain, p *stages.Pipeline, store *podstore.Store) {
		sync(p, "runtime", "file")
		began := time.Now()
		for range 5 {
			d.Ask("sweep", "crumbs")
			time.Sleep(10 * time.Second)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, []time.Time{began, began.Add(time.Minute)}, c.runs)
		v, _ := store.Get(pod.ChoreKey("sweep"))
		require.Equal(t, 2, v.State.Chore.Facts, "what a turn learns the next one knows")
		require.Equal(t, began.Add(2*time.Minute), v.State.Chore.Ended)
	})
}

func TestAChoreThatFailsIsTriedAgain(t *testing.T) {
	c := &sweep{fail: errors.New("no broom")}
	withChore(t, c, func(d *stages.Domain, p *stages.Pipeline, store *podstore.Store) {
		sync(p, "runtime", "file")
		d.Ask("sweep", "crumbs")
		synctest.Wait()
		v, _ := store.Get(pod.ChoreKey("sweep"))
		require.ErrorContains(t, v.Memo[dag.ID{Kind: "sweep"}].Err, "no broom")
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		require.Len(t, c.runs, 2)
	})
}

func TestAChoreThatNobodyHas(t *testing.T) {
	withChore(t, &sweep{}, func(d *stages.Domain, _ *stages.Pipeline, store *podstore.Store) {
		d.Ask("dust", "why not")
		synctest.Wait()
		require.Empty(t, store.Chores())
	})
}
