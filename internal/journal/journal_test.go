package journal_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/internal/pod"
)

const ms = time.Millisecond

func id(kind, of string) dag.ID { return dag.ID{Kind: kind, Of: of} }

// teller moves stages the way the engine does.
type teller struct {
	j    *journal.Journal
	k    pod.Key
	memo dag.Memo
}

func (t *teller) move(id dag.ID, e dag.Entry) {
	e.Since = time.Now()
	t.j.Moved(t.k, id, t.memo[id], e)
	t.memo[id] = e
}

func (t *teller) state(id dag.ID, s dag.State) {
	e := dag.Entry{Key: dag.Key{Do: "do " + id.String(), In: 7}, State: s, Class: id.Kind, Attempt: t.memo[id].Attempt}
	if s == dag.Running {
		e.Attempt++
	}
	t.move(id, e)
}

func (t *teller) run(id dag.ID, d time.Duration) {
	t.state(id, dag.Queued)
	t.state(id, dag.Running)
	time.Sleep(d)
	t.state(id, dag.Done)
}

func (t *teller) forget() {
	for id, e := range t.memo {
		t.j.Moved(t.k, id, e, dag.Entry{})
	}
	t.memo = dag.Memo{}
}

func spec(uid, name string) *pod.Spec {
	return &pod.Spec{
		Pod:    &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Name: name, Namespace: "shop"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}}},
		Source: pod.SourceFile, Seen: time.Now(),
	}
}

// life is a pod that a test leads through its states.
type life struct {
	teller
	s *pod.State
}

func live(j *journal.Journal, uid string) *life {
	return &life{teller: teller{j: j, k: pod.Key(uid), memo: dag.Memo{}}}
}

func (l *life) fold(c pod.Change) {
	next, changed := pod.Fold(l.s, c)
	if changed {
		old := l.s
		l.s = next
		l.j.Folded(l.k, old, next)
	}
}

func TestStartIsAnEpisode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []journal.Closed
		j := journal.New(journal.Options{Ended: func(c journal.Closed) { ended = append(ended, c) }})
		l := live(j, "u1")
		began := time.Now()
		l.j.Event(l.k, journal.Event{At: began, Source: "file", Change: "spec set", Cause: 4})
		l.fold(pod.SpecSet{Spec: spec("u1", "web")})
		time.Sleep(ms)
		l.run(id("admit", ""), 2*ms)
		l.fold(pod.Admitted{At: time.Now()})

		failed := dag.Entry{
			Key: dag.Key{Do: "pull web:1", In: 9}, State: dag.Failed, Until: time.Now().Add(10 * time.Second), Attempt: 1, Class: "image/r", Why: "w",
			Err: pod.WithReason("ErrImagePull", errors.New("connection refused")), On: []dag.ID{id("admit", "")},
		}
		l.state(id("image", "web"), dag.Running)
		ctx := j.Context(t.Context(), l.k, id("image", "web"))
		from := time.Now()
		time.Sleep(5 * ms)
		j.Called(ctx, journal.Call{Method: "PullImage", From: from, To: time.Now(), Err: "connection refused", Span: 12})
		l.move(id("image", "web"), failed)
		l.run(id("container", "web"), ms)
		require.Empty(t, ended, "the start is over when somebody says so")
		j.StartEnded(l.k, "ready")
		j.StartEnded(l.k, "failed")

		require.Len(t, ended, 1)
		require.Equal(t, journal.Start, ended[0].Kind())
		ep := ended[0].Episode()
		require.Equal(t, journal.Pod{UID: "u1", Namespace: "shop", Name: "web", Source: "file", Incarnation: began.UnixNano()}, ep.Pod)
		require.True(t, ep.Began.Equal(began))
		require.True(t, ep.Ended.Equal(time.Now()))
		require.Equal(t, "ready", ep.Outcome)
		require.Equal(t, []journal.Event{{At: ep.Events[0].At, Source: "file", Change: "spec set", Cause: 4}}, ep.Events)
		require.Len(t, ep.Moves, 8)

		got := ep.Moves[4]
		require.Equal(t, id("image", "web"), got.ID)
		require.EqualError(t, got.Entry.Err, "connection refused")
		require.Equal(t, "ErrImagePull", pod.ReasonOf(got.Entry.Err))
		require.True(t, got.Entry.Until.Equal(failed.Until))
		got.Entry.Err, failed.Err, failed.Since, failed.Until = nil, nil, got.Entry.Since, got.Entry.Until
		require.Equal(t, failed, got.Entry, "everything else of an entry is kept")

		require.Len(t, ep.Calls, 1)
		c := ep.Calls[0]
		require.Equal(t, journal.Call{Stage: id("image", "web"), Attempt: 1, Method: "PullImage", From: c.From, To: c.To, Err: "connection refused", Span: 12}, c)
		require.Equal(t, 5*ms, c.To.Sub(c.From))
		require.Len(t, j.Episodes(l.k), 2, "the start and the quiet time after it")
	})
}

// The runtime may tell that a container runs before it answers the call that started it.
func TestRunsThatOutliveTheStartBelongToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []journal.Closed
		j := journal.New(journal.Options{Ended: func(c journal.Closed) { ended = append(ended, c) }})
		l := live(j, "u1")
		l.fold(pod.SpecSet{Spec: spec("u1", "web")})
		web, record := id("container", "web"), id("record", "")
		l.run(id("admit", ""), ms)
		l.state(web, dag.Running)
		l.state(record, dag.Running)
		ctx, from := j.Context(t.Context(), l.k, web), time.Now()
		time.Sleep(5 * ms)
		ready := time.Now()
		j.StartEnded(l.k, "ready")
		j.StartEnded(l.k, "failed")
		time.Sleep(ms)
		l.run(id("probe", "web"), ms) // quiet time goes on beside it
		l.state(record, dag.Done)
		j.Called(ctx, journal.Call{Method: "StartContainer", From: from, To: time.Now()})
		require.Empty(t, ended)
		l.state(web, dag.Done)

		require.Len(t, ended, 1)
		ep := ended[0].Episode()
		require.Equal(t, "ready", ep.Outcome)
		require.Equal(t, ready, ep.Ended, "late runs do not make the start longer")
		require.Len(t, ep.Calls, 1)
		last := ep.Moves[len(ep.Moves)-1]
		require.Equal(t, web, last.ID)
		require.Equal(t, dag.Done, last.Entry.State)
		for _, m := range ep.Moves {
			require.NotEqual(t, "probe", m.ID.Kind)
		}

		l.state(web, dag.Running) // a restart, of which it knows nothing
		l.state(web, dag.Done)
		var kinds []journal.Kind
		for _, e := range j.Episodes(l.k) {
			kinds = append(kinds, e.Kind)
		}
		require.Equal(t, []journal.Kind{journal.Start, journal.Restart, journal.Quiet}, kinds)
		require.Len(t, ended, 2)
		require.Len(t, ended[0].Episode().Moves, len(ep.Moves), "a closed episode does not change")
	})
}

func TestAStartWithARunThatNeverEndsIsToldInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []journal.Closed
		j := journal.New(journal.Options{Ended: func(c journal.Closed) { ended = append(ended, c) }})
		l := live(j, "u1")
		l.fold(pod.SpecSet{Spec: spec("u1", "web")})
		l.state(id("container", "web"), dag.Running)
		j.StartEnded(l.k, "failed")
		require.Empty(t, ended)
		j.Forget(l.k)
		require.Len(t, ended, 1)
		require.Equal(t, "failed", ended[0].Episode().Outcome)
	})
}

// The news of a state may come after the moves that it led to.
func TestMovesToldBeforeTheStateAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := journal.New(journal.Options{})
		l := live(j, "u1")
		sp := spec("u1", "web")
		time.Sleep(ms)
		l.state(id("admit", ""), dag.Queued)
		l.fold(pod.SpecSet{Spec: sp})
		start := j.Episodes(l.k)[0]
		require.Equal(t, journal.Start, start.Kind)
		require.Len(t, start.Moves, 1)
		require.True(t, start.Began.Equal(sp.Seen))
		l.run(id("container", "web"), ms)
		j.StartEnded(l.k, "ready")

		l.fold(pod.Admitted{At: time.Now()})
		l.run(id("probe", "web"), ms)
		time.Sleep(time.Second)
		gone := time.Now()
		l.state(id("stop", "web"), dag.Queued)
		l.fold(pod.SpecGone{Source: pod.SourceFile, At: gone})
		all := j.Episodes(l.k)
		end := all[len(all)-1]
		require.Equal(t, journal.Delete, end.Kind)
		require.Len(t, end.Moves, 1)
		require.True(t, end.Began.Equal(gone))
		j.Forget(l.k)
		all = j.Episodes(l.k)
		require.Equal(t, "done", all[len(all)-1].Outcome, "forgetting a pod ends its deletion")
	})
}

func TestRejectedPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := journal.New(journal.Options{})
		l := live(j, "u1")
		l.fold(pod.SpecSet{Spec: spec("u1", "web")})
		l.run(id("admit", ""), ms)
		l.fold(pod.Rejected{Reason: "OutOfcpu", At: time.Now()})
		all := j.Episodes(l.k)
		require.Equal(t, "rejected", all[0].Outcome)
		require.Equal(t, journal.Finish, all[1].Kind)
		l.run(id("settle", ""), ms)
		l.fold(pod.Settled{})
		all = j.Episodes(l.k)
		require.Equal(t, "done", all[1].Outcome)
		require.Equal(t, journal.Quiet, all[2].Kind)
	})
}

func TestAdoptedPodHasNoStart(t *testing.T) {
	j := journal.New(journal.Options{})
	l := live(j, "u1")
	l.fold(pod.SpecSet{Spec: spec("u1", "web")})
	require.Equal(t, journal.Start, j.Episodes(l.k)[0].Kind)
	l.fold(pod.Observed{Began: time.Now(), Containers: []pod.Container{{ID: "c1", Name: "web", State: pod.Running}}})
	require.Equal(t, journal.Adopt, j.Episodes(l.k)[0].Kind)
}

func TestOwnContainerMakesNoAdoption(t *testing.T) {
	j := journal.New(journal.Options{})
	l := live(j, "u1")
	l.fold(pod.SpecSet{Spec: spec("u1", "web")})
	l.state(id("container", "web"), dag.Running)
	l.fold(pod.Observed{Began: time.Now(), Containers: []pod.Container{{ID: "c1", Name: "web", State: pod.Running}}})
	require.Equal(t, journal.Start, j.Episodes(l.k)[0].Kind)
}

func TestRestartOfAContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []journal.Closed
		j := journal.New(journal.Options{Ended: func(c journal.Closed) { ended = append(ended, c) }})
		l := live(j, "u1")
		l.fold(pod.SpecSet{Spec: spec("u1", "web")})
		l.run(id("container", "web"), ms)
		j.StartEnded(l.k, "ready")
		l.run(id("probe", "web"), ms)
		time.Sleep(ms)

		l.run(id("stop", "web"), ms) // liveness: stop, and start again a step later
		time.Sleep(ms)
		l.move(id("container", "web"), dag.Entry{Key: dag.Key{Do: "start attempt 1"}, State: dag.Held, Why: "crash loop"})
		time.Sleep(10 * time.Second)
		l.run(id("container", "web"), ms)

		require.Len(t, ended, 2)
		ep := ended[1].Episode()
		require.Equal(t, journal.Restart, ep.Kind)
		require.Equal(t, "web", ep.Of)
		require.Equal(t, "done", ep.Outcome)
		require.Equal(t, 10*time.Second+3*ms, ep.Ended.Sub(ep.Began))
		require.Len(t, ep.Moves, 7, "the probe before it is not part of it")
	})
}

func TestTwoContainersRestartInOneEpisode(t *testing.T) {
	var ended []journal.Closed
	j := journal.New(journal.Options{Ended: func(c journal.Closed) { ended = append(ended, c) }})
	l := live(j, "u1")
	l.fold(pod.SpecSet{Spec: spec("u1", "web")})
	l.run(id("container", "a"), 0)
	j.StartEnded(l.k, "ready")
	l.state(id("container", "a"), dag.Queued)
	l.state(id("container", "b"), dag.Queued)
	l.state(id("container", "a"), dag.Done)
	require.Len(t, ended, 1)
	l.move(id("container", "b"), dag.Entry{Key: dag.Key{Do: "start"}, State: dag.Failed, Err: errors.New("never"), Attempt: 1})
	require.Len(t, ended, 2)
	require.Equal(t, "failed", ended[1].Episode().Outcome)
}

func TestDeletionIsAnEpisode(t *testing.T) {
	var ended []journal.Closed
	j := journal.New(journal.Options{Ended: func(c journal.Closed) { ended = append(ended, c) }})
	l := live(j, "u1")
	l.fold(pod.SpecSet{Spec: spec("u1", "web")})
	l.fold(pod.Admitted{At: time.Now()})
	l.state(id("image", "web"), dag.Running)
	l.fold(pod.SpecGone{Source: pod.SourceFile, At: time.Now()})
	require.Len(t, ended, 1)
	require.Equal(t, "overtaken", ended[0].Episode().Outcome)
	l.state(id("image", "web"), dag.Done)
	l.run(id("sandbox", "stop"), 0)
	l.forget()
	l.fold(pod.Gone{At: time.Now()})
	require.Len(t, ended, 2)
	ep := ended[1].Episode()
	require.Equal(t, journal.Delete, ep.Kind)
	require.Equal(t, dag.Running, ep.Moves[0].Entry.State, "a run that began before is known")
	require.True(t, ep.Moves[len(ep.Moves)-1].Gone)

	var last dag.Entry
	for _, e := range ep.Entries() {
		last = e
	}
	require.Equal(t, dag.Entry{Since: ep.Moves[len(ep.Moves)-1].At}, last)
	j.Forget(l.k)
	require.Len(t, j.Episodes(l.k), 2, "the episodes of a pod that is gone can still be read")
}

func TestUIDThatComesBackStartsAgain(t *testing.T) {
	var ended []journal.Closed
	j := journal.New(journal.Options{Ended: func(c journal.Closed) { ended = append(ended, c) }})
	l := live(j, "u1")
	l.fold(pod.SpecSet{Spec: spec("u1", "web")})
	l.run(id("container", "web"), 0)
	l.fold(pod.SpecGone{Source: pod.SourceFile, At: time.Now()})
	l.run(id("sandbox.stop", ""), 0)
	l.fold(pod.SpecSet{Spec: spec("u1", "web")})
	l.fold(pod.Gone{At: time.Now().Add(time.Second)})
	all := j.Episodes(l.k)
	require.Len(t, all, 3)
	require.Equal(t, []journal.Kind{journal.Start, journal.Delete, journal.Start}, []journal.Kind{all[0].Kind, all[1].Kind, all[2].Kind})
	require.NotEqual(t, all[0].Pod.Incarnation, all[2].Pod.Incarnation)
	require.Len(t, ended, 2)
}

func TestBounds(t *testing.T) {
	j := journal.New(journal.Options{Keep: 10, Limit: 100, Tail: 8})
	l := live(j, "u1")
	for i := range 50 { // at rest: only a tail
		l.state(id("probe", "web"), dag.State(i%2)*dag.Done)
	}
	quiet := j.Episodes(l.k)[0]
	require.LessOrEqual(t, len(quiet.Moves), 8)
	require.Equal(t, 50, len(quiet.Moves)+quiet.Dropped)

	l.fold(pod.SpecSet{Spec: spec("u1", "web")})
	for range 150 {
		l.state(id("image", "web"), dag.Running)
	}
	start := j.Episodes(l.k)[0]
	require.Len(t, start.Moves, 100)
	require.Equal(t, 50, start.Dropped)
	j.StartEnded(l.k, "ready")

	for range 30 { // a crash loop does not push out the start
		l.run(id("container", "web"), 0)
	}
	all := j.Episodes(l.k)
	require.Len(t, all, 6)
	require.Equal(t, journal.Start, all[0].Kind)

	for i := range 30 {
		o := live(j, fmt.Sprint("o", i))
		o.fold(pod.SpecSet{Spec: spec(string(o.k), "other")})
		o.run(id("container", "web"), 0)
		j.StartEnded(o.k, "ready")
	}
	require.Len(t, j.Episodes(l.k), 1, "all closed episodes together are bounded")
}

// A pod start of 16 stages is to cost at most 8 KB once it is over.
func TestMemoryOfAClosedStart(t *testing.T) {
	const pods = 100
	j := journal.New(journal.Options{})
	before := heap()
	for i := range pods {
		l := live(j, fmt.Sprintf("00000000-0000-0000-0000-%012d", i))
		l.fold(pod.SpecSet{Spec: spec(string(l.k), "web")})
		for s := range 16 {
			stage := id([]string{"image", "volume", "container", "inputs"}[s%4], fmt.Sprint(s/4))
			l.move(stage, dag.Entry{State: dag.Waiting, On: []dag.ID{id("admit", ""), id("sandbox", "")}, Key: dag.Key{Do: fmt.Sprintf("start attempt 0 in sandbox %d", i)}, Class: "container"})
			l.run(stage, 0)
		}
		j.StartEnded(l.k, "ready")
		l.memo, l.s = nil, nil
	}
	per := (heap() - before) / pods
	t.Logf("%d bytes per pod", per)
	require.Less(t, per, int64(8<<10))
	runtime.KeepAlive(j)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkMoved(b *testing.B) {
	j := journal.New(journal.Options{Limit: 1 << 20})
	l := live(j, "u1")
	l.fold(pod.SpecSet{Spec: spec("u1", "web")})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%100 == 0 {
			j.Begin(l.k, journal.Start, time.Now())
		}
		l.state(id("image", "web"), dag.Running)
	}
}
