package dag

import "fmt"

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
	inFlight := 0
	for class, q := range e.queues {
		if q.empty() {
			return fmt.Sprintf("queue %q has nothing in it and was kept", class)
		}
		if e.spawn != nil && q.hasSlot() && !q.stopped() && len(q.waiting) > 0 && !e.allBlocked(q) {
			return fmt.Sprintf("queue %q has a free slot and somebody who could use it", class)
		}
		inFlight += len(q.running) + len(q.lost)
	}
	for _, f := range e.flows {
		if breach := e.flowBreach(f); breach != "" {
			return breach
		}
		for _, r := range f.runs {
			if r.at != queued && r.carrier == nil {
				inFlight--
			}
		}
	}
	if inFlight != 0 {
		return fmt.Sprintf("queues and memos differ by %d runs in flight", inFlight)
	}
	return ""
}

func (e *Engine[K, F]) allBlocked(q *queue[K, F]) bool {
	for _, r := range q.waiting {
		if e.owners[r.node.Owns] == nil {
			return false
		}
	}
	return true
}

// flowBreach compares the memo of a key with its runs.
func (e *Engine[K, F]) flowBreach(f *flow[K, F]) string {
	for id, r := range f.runs {
		if got, want := f.memo[id].State, r.at.state(); got != want {
			return fmt.Sprintf("%v %s is %s and its memo says %s", f.key, id, want, got)
		}
		if owner := e.owners[r.node.Owns]; r.at != queued && r.node.Owns != "" && owner != r {
			return fmt.Sprintf("%v %s runs and does not own %q", f.key, id, r.node.Owns)
		}
	}
	for id, entry := range f.memo {
		if _, ok := f.runs[id]; !ok && (entry.InFlight() || entry.State == Queued) {
			return fmt.Sprintf("%v %s is %s in its memo and there is no run", f.key, id, entry.State)
		}
	}
	return ""
}
