package dag

import (
	"fmt"
	"slices"
)

// check panics with a sentence when the engine broke one of its own rules. It
// does nothing unless Options.Validate is set.
func (e *Engine[K, F]) check() {
	if !e.validate {
		return
	}
	if breach := e.breach(); breach != "" {
		panic("dag: " + breach)
	}
}

// breach describes the first broken rule, if any.
func (e *Engine[K, F]) breach() string {
	seats := 0
	for class, q := range e.queues {
		if q.empty() {
			return fmt.Sprintf("queue %q has nothing in it and was kept", class)
		}
		if e.spawn != nil && q.hasSlot() && !q.stopped() && slices.ContainsFunc(q.waiting, func(r *run[K, F]) bool { return e.blocker(q, r) == nil }) {
			return fmt.Sprintf("queue %q has a free slot and somebody who could use it", class)
		}
		for _, runs := range [3][]*run[K, F]{q.waiting, q.running, q.lost} {
			for _, r := range runs {
				seats += len(r.seats)
				if breach := e.runBreach(r); breach != "" {
					return breach
				}
			}
		}
	}
	for _, f := range e.flows {
		for id, entry := range f.memo {
			if _, ok := f.seats[id]; ok != (entry.InFlight() || entry.State == Queued) {
				return fmt.Sprintf("%v %s is %s in its memo; in a run: %t", f.key, id, entry.State, ok)
			}
		}
		seats -= len(f.seats)
	}
	if seats != 0 {
		return fmt.Sprintf("keys and queues differ by %d seats", seats)
	}
	return ""
}

// runBreach compares a run with the memos of its stages and with its object.
func (e *Engine[K, F]) runBreach(r *run[K, F]) string {
	for _, s := range r.seats {
		if got, want := s.entry().State, r.at.state(); s.run != r || got != want {
			return fmt.Sprintf("%v %s is %s and its memo says %s", s.flow.key, s.node.ID, want, got)
		}
	}
	if lead := r.lead(); r.at != queued && lead.node.Owns != "" && e.owners[lead.node.Owns] != r {
		return fmt.Sprintf("%v %s runs and does not own %q", lead.flow.key, lead.node.ID, lead.node.Owns)
	}
	return ""
}
