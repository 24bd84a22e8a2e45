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

// run is a call on its way, for one stage or for several that share it:
//
//	queued → running → ended
//	            ↓        ↑
//	           lost  ────┘
type run[K comparable, F any] struct {
	seats   []*seat[K, F] // in the order they came; never empty
	share   string        // not empty: others may join
	arrival uint64        // its number among all runs
	at      place
	since   time.Time // of at

	// Once running:
	deadline time.Time // zero: none
	cancel   context.CancelCauseFunc
	unwanted bool        // cancelled by us: an error of it is no failure
	lostMark *time.Timer // nil: no deadline
}

// lead is the stage that gives the run its class and its object, and its work
// when it starts.
func (r *run[K, F]) lead() *seat[K, F] { return r.seats[0] }

// priority is that of its most urgent stage.
func (r *run[K, F]) priority() int {
	highest := r.seats[0].priority
	for _, s := range r.seats[1:] {
		highest = max(highest, s.priority)
	}
	return highest
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
	if object := r.lead().node.Owns; object != "" {
		e.owners[object] = r
	}
	if q.row.Deadline > 0 {
		r.deadline = now.Add(q.row.Deadline)
		r.lostMark = time.AfterFunc(q.row.Deadline+orDefault(q.row.Grace, defaultGrace), func() { e.lose(r) })
	}
	for _, s := range r.seats {
		e.begin(now, s)
	}
	e.live++
	e.spawn(r)
}

// stop cancels a run that is under way.
func (r *run[K, F]) stop(cause error) {
	r.unwanted = true
	r.cancel(cause)
}

// execute is a run's goroutine. A plain one: a conc group would wait for the
// lost too, and would keep to itself a panic of deliver, which has to be loud.
func (e *Engine[K, F]) execute(ctx context.Context, r *run[K, F], lead *seat[K, F]) {
	defer r.cancel(nil)
	facts, err := call(e.observer.Context(ctx, lead.flow.key, lead.node.ID), lead.node.Run)
	if err != nil && context.Cause(ctx) == ErrDeadline { //nolint:errorlint // the cause itself
		err = fmt.Errorf("%w: %w", ErrDeadline, err)
	}
	e.end(r, err)
	for _, s := range r.seats { // nobody joins or leaves any more
		e.deliver(s.flow.key, s.node.ID, facts, err)
		e.delivered(s)
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
	q := e.queue(r.lead().node.Class)
	q.running, q.lost = without(q.running, r), append(q.lost, r)
	r.at, r.since = lost, now
	e.release()
	for _, s := range r.seats {
		to := s.entry()
		to.State, to.Since, to.Until = Lost, now, time.Time{}
		e.move(s.flow, s.node.ID, to)
	}
	e.dispatch(now, q)
	e.check()
}

// end moves the memo of a run that returned and frees what it had.
func (e *Engine[K, F]) end(r *run[K, F], err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	q := e.queue(r.lead().node.Class)
	if r.at == lost {
		q.lost = without(q.lost, r)
		e.live++ // back again: Run waits for its delivery
	}
	q.running = without(q.running, r)
	if r.lostMark != nil {
		r.lostMark.Stop()
	}
	r.at, r.since = ended, now
	for _, s := range r.seats {
		delete(s.flow.seats, s.node.ID)
		s.flow.ended = append(s.flow.ended, s)
		s.flow.ends++
		e.move(s.flow, s.node.ID, e.outcome(now, s, err))
	}
	if object := r.lead().node.Owns; object == "" {
		e.dispatch(now, q)
	} else {
		delete(e.owners, object)
		e.dispatchAll(now)
	}
	e.check()
}

// outcome returns the entry of a stage whose run ended.
func (e *Engine[K, F]) outcome(now time.Time, s *seat[K, F], err error) Entry {
	to := s.entry()
	to.Since, to.Until, to.Why = now, time.Time{}, ""
	switch {
	case err == nil:
		to.State, to.Err = Done, nil
	case s.run.unwanted:
		to = to.dropped(now)
	default:
		b := e.policy.row(s.node.Class).Backoff
		to.State, to.Err = Failed, err
		to.Until = retryAt(now, err, jittered(b.Delay(to.Attempt), b.Jitter, e.rng))
	}
	return to
}

// delivered notes that the facts of a run are known to those who build graphs
// with this stage.
func (e *Engine[K, F]) delivered(s *seat[K, F]) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.delivered = true
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
