package dag

import (
	"context"
	"fmt"
	"time"

	"github.com/sourcegraph/conc/panics"
)

// defaultGrace is how long after its deadline a run may take to return before
// it counts as lost, when its class does not say.
const defaultGrace = time.Second

// run is one stage on its way:
//
//	queued → running → ended
//	            ↓        ↑
//	           lost  ────┘
type run[K comparable, F any] struct {
	flow     *flow[K, F]
	node     Node[F]
	priority int    // in its queue
	wanted   int    // the priority of its own graph
	arrival  uint64 // its number among all runs
	at       place
	since    time.Time // of place

	carrier *run[K, F]   // whose run it joined; nil: its own
	joined  []*run[K, F] // who joined it

	// Once running:
	deadline  time.Time // zero: none
	cancel    context.CancelCauseFunc
	unwanted  bool        // cancelled by us: an error of it is no failure
	lostMark  *time.Timer // nil: no deadline
	delivered bool
}

// place is where a run is.
type place uint8

const (
	queued place = iota
	running
	lost
	ended
)

// state is what the memo shows of a run in that place.
func (p place) state() State {
	switch p {
	case queued:
		return Queued
	case running:
		return Running
	case lost:
		return Lost
	default:
		return Done // or failed: the run does not know
	}
}

// PanicError is what a stage that panicked failed with.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // of the goroutine that panicked
}

// Error returns "panic: " and the value, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// start gives a waiting run its slot.
func (e *Engine[K, F]) start(now time.Time, q *queue[K, F], r *run[K, F]) {
	q.running = append(q.running, r)
	if r.node.Owns != "" {
		e.owners[r.node.Owns] = r
	}
	if q.row.Deadline > 0 {
		r.deadline = now.Add(q.row.Deadline)
		r.lostMark = time.AfterFunc(q.row.Deadline+orDefault(q.row.Grace, defaultGrace), func() { e.lose(r) })
	}
	for _, m := range r.all() {
		e.begin(now, m, r.deadline)
	}
	e.live++
	e.spawn(r)
}

// begin moves the memo of a stage whose run starts, or that joins one.
func (e *Engine[K, F]) begin(now time.Time, r *run[K, F], deadline time.Time) {
	r.at, r.since = running, now
	to := r.flow.memo[r.node.ID]
	to.State, to.Since, to.Until, to.Why = Running, now, deadline, r.why()
	to.Attempt++
	e.move(r.flow, r.node.ID, to)
}

// cancel ends a run that is no longer wanted: a waiting one leaves its queue, a
// running one loses its context. A lost one has lost it already. left: others
// share the run, which goes on for them.
func (e *Engine[K, F]) cancel(r *run[K, F], cause error) (left bool) {
	if (r.at == queued || r.at == running) && e.part(r) {
		return true
	}
	switch r.at {
	case queued:
		e.dequeue(r)
	case running:
		r.unwanted = true
		e.unshare(r)
		r.cancel(cause)
	case lost, ended:
	}
	return false
}

// execute is a run's goroutine. A plain one: a conc group would wait for the
// lost too, and would keep to itself a panic of deliver, which has to be loud.
func (e *Engine[K, F]) execute(ctx context.Context, r *run[K, F]) {
	defer r.cancel(nil)
	facts, err := call(e.observer.Context(ctx, r.flow.key, r.node.ID), r.node.Run)
	if err != nil && context.Cause(ctx) == ErrDeadline { //nolint:errorlint // the cause itself
		err = fmt.Errorf("%w: %w", ErrDeadline, err)
	}
	for _, m := range e.end(r, err) {
		e.deliver(m.flow.key, m.node.ID, facts, err)
		e.delivered(m)
	}
	e.close()
}

// call runs a stage and turns its panic into an error.
func call[F any](ctx context.Context, work func(context.Context) (F, error)) (facts F, err error) {
	if p := panics.Try(func() { facts, err = work(ctx) }); p != nil {
		err = &PanicError{Value: p.Value, Stack: p.Stack}
	}
	return facts, err
}

// lose gives up waiting for a run that has not returned: its slot is free for
// others, its object is not.
func (e *Engine[K, F]) lose(r *run[K, F]) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.at != running {
		return // it returned at the last moment
	}
	now := time.Now()
	q := e.queue(r.node.Class)
	q.running, q.lost = without(q.running, r), append(q.lost, r)
	e.unshare(r)
	e.release()
	for _, m := range r.all() {
		m.at, m.since = lost, now
		to := m.flow.memo[m.node.ID]
		to.State, to.Since, to.Until = Lost, now, time.Time{}
		e.move(m.flow, m.node.ID, to)
	}
	e.dispatch(now, q)
	e.check()
}

// end moves the memos for a run that returned, frees what it had, and returns
// those whose run it was.
func (e *Engine[K, F]) end(r *run[K, F], err error) []*run[K, F] {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	q := e.queue(r.node.Class)
	if r.at == lost {
		q.lost = without(q.lost, r)
		e.live++ // back again: Run waits for its delivery
	}
	q.running = without(q.running, r)
	if r.lostMark != nil {
		r.lostMark.Stop()
	}
	e.unshare(r)
	all := r.all()
	for _, m := range all {
		f, id := m.flow, m.node.ID
		m.at, m.since = ended, now
		delete(f.runs, id)
		f.ended = append(f.ended, m)
		e.move(f, id, e.outcome(now, m, err))
	}
	if r.node.Owns == "" {
		e.dispatch(now, q)
	} else {
		delete(e.owners, r.node.Owns)
		e.dispatchAll(now)
	}
	e.check()
	return all
}

// outcome returns the entry of a run that ended.
func (e *Engine[K, F]) outcome(now time.Time, r *run[K, F], err error) Entry {
	to := r.flow.memo[r.node.ID]
	to.Since, to.Until, to.Why = now, time.Time{}, ""
	switch {
	case err == nil:
		to.State, to.Err = Done, nil
	case r.unwanted:
		return abandoned(now, to)
	default:
		b := e.policy.row(r.node.Class).Backoff
		to.State, to.Err = Failed, err
		to.Until = retryAt(now, err, jittered(b.Delay(to.Attempt), b.Jitter, e.rng))
	}
	return to
}

// abandoned is the entry after a run that was no longer wanted: as if it had
// never been, until the next step.
func abandoned(now time.Time, e Entry) Entry {
	e.State, e.Key, e.Since, e.Until = Waiting, Key{}, now, time.Time{}
	e.Attempt, e.Err, e.Why = 0, nil, ""
	return e
}

// delivered notes that a run's facts are known to those who build graphs.
func (e *Engine[K, F]) delivered(r *run[K, F]) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.delivered = true
}

// close notes that a run's goroutine has nothing left to do.
func (e *Engine[K, F]) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.release()
}

// release notes that Run has one goroutine less to wait for.
func (e *Engine[K, F]) release() {
	e.live--
	e.quiet.Broadcast()
}
