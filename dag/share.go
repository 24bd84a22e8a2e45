package dag

import (
	"fmt"
	"slices"
	"time"
)

// seat is the place of one stage in a run: its own, or one that it shares.
type seat[K comparable, F any] struct {
	run       *run[K, F]
	flow      *flow[K, F]
	node      Node[F]
	priority  int
	since     time.Time // when it was queued
	delivered bool
}

func (s *seat[K, F]) entry() Entry { return s.flow.memo[s.node.ID] }

// dropped is the entry of a stage whose run was given up as no longer wanted:
// no failure and no back-off, the next step decides afresh.
func (e Entry) dropped(now time.Time) Entry {
	return Entry{State: Waiting, Since: now, Owns: e.Owns, Class: e.Class, Atomic: e.Atomic}
}

// sit gives a queued stage its seat: in a run that it can share, else in a new
// one at its place in the queue of its class.
func (e *Engine[K, F]) sit(now time.Time, s *seat[K, F]) {
	s.flow.seats[s.node.ID] = s
	q := e.queue(s.node.Class)
	if r := q.joinable(s.node.Share); r != nil {
		s.run = r
		r.seats = append(r.seats, s)
		if r.at == running {
			e.begin(now, s)
		} else {
			q.resort(r)
		}
		return
	}
	e.arrival++
	s.run = &run[K, F]{seats: []*seat[K, F]{s}, share: s.node.Share, arrival: e.arrival}
	q.push(s.run)
}

// begin moves the memo of a stage whose run is under way from now on.
func (e *Engine[K, F]) begin(now time.Time, s *seat[K, F]) {
	to := s.entry()
	to.State, to.Since, to.Until = Running, now, s.run.deadline
	to.Attempt++
	if lead := s.run.lead(); lead != s {
		to.Why = fmt.Sprintf("joined the run of %v", lead.flow.key)
	}
	e.move(s.flow, s.node.ID, to)
}

// dismiss takes a stage that is no longer wanted out of its run. If it was the
// only one, the run leaves its queue or loses its context; in that case the
// stage stays in the run until it ends. If others go on with the run without
// it, dismiss returns true: the stage is to be decided again.
func (e *Engine[K, F]) dismiss(now time.Time, s *seat[K, F]) (again bool) {
	switch r := s.run; {
	case r.at == queued:
		e.leave(s)
	case r.at == running && len(r.seats) > 1:
		e.leave(s)
		e.move(s.flow, s.node.ID, s.entry().dropped(now))
		return true
	case r.at == running:
		r.stop(ErrSuperseded)
	}
	return false
}

// leave frees a seat, and takes a run out of its queue when nobody is left.
func (e *Engine[K, F]) leave(s *seat[K, F]) {
	delete(s.flow.seats, s.node.ID)
	r, q := s.run, e.queue(s.node.Class)
	if len(r.seats) == 1 {
		q.waiting = without(q.waiting, r)
		e.tidy(q)
		return
	}
	r.seats = without(r.seats, s)
	if r.at == queued {
		q.resort(r)
	}
}

// refresh gives the waiting stages of a key what the newest graph says about
// them: they have the same keys (or they would have left), but newer data.
func (e *Engine[K, F]) refresh(f *flow[K, F], g *Graph[F]) {
	for id, s := range f.seats {
		if s.run.at != queued {
			continue
		}
		s.node, _ = g.Node(id)
		if s.priority != g.Priority {
			s.priority = g.Priority
			e.queue(s.node.Class).resort(s.run)
		}
	}
}

// joinable returns the run of a class that a stage with that Share joins: one
// that waits, or is under way and still wanted.
func (q *queue[K, F]) joinable(share string) *run[K, F] {
	if share == "" {
		return nil
	}
	joins := func(r *run[K, F]) bool { return r.share == share && !r.unwanted }
	for _, runs := range [2][]*run[K, F]{q.waiting, q.running} {
		if i := slices.IndexFunc(runs, joins); i >= 0 {
			return runs[i]
		}
	}
	return nil
}

// blocker returns the run that has to end before a waiting one may start: it
// has its object, or is the same shared call, lost or about to end.
func (e *Engine[K, F]) blocker(q *queue[K, F], r *run[K, F]) *run[K, F] {
	if owner := e.owners[r.lead().node.Owns]; owner != nil || r.share == "" {
		return owner
	}
	for _, runs := range [2][]*run[K, F]{q.running, q.lost} {
		for _, other := range runs {
			if other.share == r.share {
				return other
			}
		}
	}
	return nil
}
