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
	priority int
	arrival  uint64 // its number among all runs
	at       place
	since    time.Time // of place

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
	r.at, r.since = running, now
	q.running = append(q.running, r)
	if r.node.Owns != "" {
		e.owners[r.node.Owns] = r
	}
	if q.row.Deadline > 0 {
		r.deadline = now.Add(q.row.Deadline)
		r.lostMark = time.AfterFunc(q.row.Deadline+orDefault(q.row.Grace, defaultGrace), func() { e.lose(r) })
	}
	to := r.flow.memo[r.node.ID]
	to.State, to.Since, to.Until = Running, now, r.deadline
	to.Attempt++
	e.move(r.flow, r.node.ID, to)
	e.live++
	e.spawn(r)
}

// cancel ends a run that is no longer wanted: a waiting one leaves its queue, a
// running one loses its context. A lost one has lost it already.
func (e *Engine[K, F]) cancel(r *run[K, F], cause error) {
	switch r.at {
	case queued:
		e.dequeue(r)
	case running:
		r.unwanted = true
		r.cancel(cause)
	case lost, ended:
	}
}

// execute is a run's goroutine. A plain one: a conc group would wait for the
// lost too, and would keep to itself a panic of deliver, which has to be loud.
func (e *Engine[K, F]) execute(ctx context.Context, r *run[K, F]) {
	defer r.cancel(nil)
	facts, err := call(e.observer.Context(ctx, r.flow.key, r.node.ID), r.node.Run)
	if err != nil && context.Cause(ctx) == ErrDeadline { //nolint:errorlint // the cause itself
		err = fmt.Errorf("%w: %w", ErrDeadline, err)
	}
	e.end(r, err)
	e.deliver(r.flow.key, r.node.ID, facts, err)
	e.close(r)
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
	r.at, r.since = lost, now
	e.release()
	to := r.flow.memo[r.node.ID]
	to.State, to.Since, to.Until = Lost, now, time.Time{}
	e.move(r.flow, r.node.ID, to)
	e.dispatch(now, q)
	e.check()
}

// end moves the memo for a run that returned and frees what it had.
func (e *Engine[K, F]) end(r *run[K, F], err error) {
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
	f, id := r.flow, r.node.ID
	r.at, r.since = ended, now
	delete(f.runs, id)
	f.ended = append(f.ended, r)
	e.move(f, id, e.outcome(now, r, err))
	if r.node.Owns == "" {
		e.dispatch(now, q)
	} else {
		delete(e.owners, r.node.Owns)
		e.dispatchAll(now)
	}
	e.check()
}

// outcome returns the entry of a run that ended.
func (e *Engine[K, F]) outcome(now time.Time, r *run[K, F], err error) Entry {
	to := r.flow.memo[r.node.ID]
	to.Since, to.Until = now, time.Time{}
	switch {
	case err == nil:
		to.State, to.Err = Done, nil
	case r.unwanted:
		to.State, to.Key, to.Attempt, to.Err = Waiting, Key{}, 0, nil
	default:
		b := e.policy.row(r.node.Class).Backoff
		to.State, to.Err = Failed, err
		to.Until = retryAt(now, err, jittered(b.Delay(to.Attempt), b.Jitter, e.rng))
	}
	return to
}

// close notes that a run's facts are delivered: its goroutine has nothing left to do.
func (e *Engine[K, F]) close(r *run[K, F]) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.delivered = true
	e.release()
}

// release notes that Run has one goroutine less to wait for.
func (e *Engine[K, F]) release() {
	e.live--
	e.quiet.Broadcast()
}
