package dag

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// queue is one class: what runs and what waits for a slot.
type queue[K comparable, F any] struct {
	class   string
	row     Class
	waiting []*run[K, F] // in the order of row.Order
	running []*run[K, F] // in the order they were started
	lost    []*run[K, F]
}

// row returns the class's row of the policy: its own, else that of the part
// before the first slash, else that of "".
func (p Policy) row(class string) Class {
	if row, ok := p[class]; ok {
		return row
	}
	family, _, _ := strings.Cut(class, "/")
	if row, ok := p[family]; ok {
		return row
	}
	return p[""]
}

// hasSlot reports whether one more may run.
func (q *queue[K, F]) hasSlot() bool {
	return q.row.Slots <= 0 || len(q.running) < q.row.Slots
}

// stopped reports whether so many runs are lost that no more are started.
func (q *queue[K, F]) stopped() bool {
	return q.row.MaxLost > 0 && len(q.lost) >= q.row.MaxLost
}

func (q *queue[K, F]) empty() bool {
	return len(q.waiting)+len(q.running)+len(q.lost) == 0
}

// compare orders two waiting runs.
func (q *queue[K, F]) compare(a, b *run[K, F]) int {
	byArrival := cmp.Compare(a.arrival, b.arrival)
	if q.row.Order == ByArrival {
		return byArrival
	}
	return cmp.Or(cmp.Compare(b.priority(), a.priority()), byArrival)
}

func (q *queue[K, F]) push(r *run[K, F]) {
	i, _ := slices.BinarySearchFunc(q.waiting, r, q.compare)
	q.waiting = slices.Insert(q.waiting, i, r)
}

// resort moves a waiting run to where its priority puts it now.
func (q *queue[K, F]) resort(r *run[K, F]) {
	q.waiting = without(q.waiting, r)
	q.push(r)
}

func without[T comparable](list []T, v T) []T {
	return slices.DeleteFunc(list, func(x T) bool { return x == v })
}

// queue returns the queue of a class.
func (e *Engine[K, F]) queue(class string) *queue[K, F] {
	q, ok := e.queues[class]
	if !ok {
		q = &queue[K, F]{class: class, row: e.policy.row(class)}
		e.queues[class] = q
	}
	return q
}

// dispatch gives free slots to those who wait. Who has to wait for another run
// to end is passed over and keeps its place.
func (e *Engine[K, F]) dispatch(now time.Time, q *queue[K, F]) {
	for i := 0; i < len(q.waiting) && e.spawn != nil && q.hasSlot() && !q.stopped(); {
		r := q.waiting[i]
		if e.blocker(q, r) != nil {
			i++
			continue
		}
		q.waiting = slices.Delete(q.waiting, i, i+1)
		e.start(now, q, r)
	}
	e.tidy(q)
}

// dispatchAll looks at every queue, by name so that chance decides nothing.
func (e *Engine[K, F]) dispatchAll(now time.Time) {
	for _, class := range slices.Sorted(maps.Keys(e.queues)) {
		e.dispatch(now, e.queues[class])
	}
}

// tidy forgets a queue with nothing in it: class names come and go.
func (e *Engine[K, F]) tidy(q *queue[K, F]) {
	if q.empty() {
		delete(e.queues, q.class)
	}
}

// SetPolicy changes the policy while the engine runs. Runs in flight keep the
// slot and the deadline they have; new slots are given out at once.
func (e *Engine[K, F]) SetPolicy(p Policy) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.policy = maps.Clone(p)
	for class, q := range e.queues {
		q.row = p.row(class)
		slices.SortFunc(q.waiting, q.compare)
	}
	e.dispatchAll(time.Now())
	e.check()
}
