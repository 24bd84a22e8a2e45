package dag

import (
	"fmt"
	"slices"
	"time"
)

// Stages of any key with the same Share are one run. The first of them carries
// it: it stands in the queue, has the slot and the goroutine. Others join it
// and share its fate, until they leave or it ends. When the carrier itself
// leaves, one that joined takes its place.

// join makes r part of the run that its Share names, if there is one to join.
func (e *Engine[K, F]) join(now time.Time, r *run[K, F]) bool {
	if r.node.Share == "" {
		return false
	}
	c := e.shares[r.node.Share]
	if c == nil {
		e.shares[r.node.Share] = r
		return false
	}
	r.carrier, r.at = c, c.at
	c.joined = append(c.joined, r)
	if c.at == running {
		e.begin(now, r, c.deadline)
	} else {
		e.reorder(c)
	}
	return true
}

// part takes r out of the run that it shares with others; the run goes on for
// them. It reports whether there were others.
func (e *Engine[K, F]) part(r *run[K, F]) bool {
	switch {
	case r.carrier != nil:
		c := r.carrier
		c.joined = without(c.joined, r)
		delete(r.flow.runs, r.node.ID)
		if c.at == queued {
			e.reorder(c)
		}
	case len(r.joined) > 0:
		delete(r.flow.runs, r.node.ID)
		e.handOver(r)
	default:
		return false
	}
	return true
}

// handOver gives a carrier the identity of the first that joined it.
func (e *Engine[K, F]) handOver(c *run[K, F]) {
	next := c.joined[0]
	c.joined = slices.Delete(c.joined, 0, 1)
	c.flow, c.node, c.arrival, c.wanted, c.since = next.flow, next.node, next.arrival, next.wanted, next.since
	c.flow.runs[c.node.ID] = c
	if c.at == queued {
		e.reorder(c)
	}
}

// reorder puts a queued carrier where the most urgent of those it carries belongs.
func (e *Engine[K, F]) reorder(c *run[K, F]) {
	q := e.queue(c.node.Class)
	q.waiting = without(q.waiting, c)
	c.priority = c.wanted
	for _, j := range c.joined {
		c.priority = max(c.priority, j.wanted)
	}
	q.push(c)
}

// unshare makes the next stage with that Share a run of its own.
func (e *Engine[K, F]) unshare(c *run[K, F]) {
	if e.shares[c.node.Share] == c {
		delete(e.shares, c.node.Share)
	}
}

// all returns the run and those that joined it.
func (r *run[K, F]) all() []*run[K, F] {
	return append([]*run[K, F]{r}, r.joined...)
}

// why says in the memo whose run it is.
func (r *run[K, F]) why() string {
	if r.carrier == nil {
		return ""
	}
	return fmt.Sprintf("joined the run of %v", r.carrier.flow.key)
}

// head returns the run that stands in the queue for r.
func (r *run[K, F]) head() *run[K, F] {
	if r.carrier != nil {
		return r.carrier
	}
	return r
}
