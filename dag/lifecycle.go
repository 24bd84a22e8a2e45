package dag

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Run starts what is queued and whatever comes after, and blocks until ctx
// ends. From then on nothing new is started (what is queued stays queued), runs
// that are not atomic are cancelled with ErrStopping, and atomic ones go on to
// their own end or their deadline. Run returns when all have ended and were
// delivered, but for the lost: the error names them. It can be called once.
//
// Runs get the values of ctx, not its end.
func (e *Engine[K, F]) Run(ctx context.Context) error {
	if err := e.open(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	return e.shut()
}

func (e *Engine[K, F]) open(base context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ran {
		return errors.New("dag: engine was run before")
	}
	e.ran = true
	e.spawn = func(r *run[K, F]) {
		ctx, cancel := runContext(base, r.deadline)
		r.cancel = cancel
		go e.execute(ctx, r, r.lead())
	}
	e.dispatchAll(time.Now())
	e.check()
	return nil
}

// runContext returns the context of a run. The deadline may be zero.
func runContext(base context.Context, deadline time.Time) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(base)
	if deadline.IsZero() {
		return ctx, cancel
	}
	ctx, stop := context.WithDeadlineCause(ctx, deadline, ErrDeadline)
	return ctx, func(cause error) { cancel(cause); stop() }
}

func (e *Engine[K, F]) shut() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.spawn = nil
	for _, q := range e.queues {
		for _, r := range q.running {
			if !slices.ContainsFunc(r.seats, func(s *seat[K, F]) bool { return s.node.Atomic }) {
				r.stop(ErrStopping)
			}
		}
	}
	for e.live > 0 {
		e.quiet.Wait()
	}
	return e.lostError()
}

// lostError names the lost runs, the oldest first; nil if there are none.
func (e *Engine[K, F]) lostError() error {
	var all []*run[K, F]
	for _, q := range e.queues {
		all = append(all, q.lost...)
	}
	slices.SortFunc(all, func(a, b *run[K, F]) int { return cmp.Compare(a.arrival, b.arrival) })
	var names []string
	for _, r := range all {
		for _, s := range r.seats {
			names = append(names, fmt.Sprintf("%v %s (%s, lost since %s)", s.flow.key, s.node.ID, s.node.Key.Do, r.since.Format(time.RFC3339)))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("calls did not return after their deadline and are left behind: %s", strings.Join(names, ", "))
}
