package probe

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/flowlet/flowlet/internal/pod"
)

// check names one probe of one container.
type check struct {
	key  pod.Key
	id   string
	kind string
}

func (c check) compare(o check) int {
	return cmp.Or(cmp.Compare(c.key, o.key), cmp.Compare(c.id, o.id), cmp.Compare(c.kind, o.kind))
}

// entry is a check with the time at which it is, or was last, due.
type entry struct {
	check

	due time.Time
	at  int // its place in the heap; -1: it was emitted
}

// schedule is a heap of entries, the first due first.
type schedule []*entry

// put puts an entry in, or moves it to where it belongs now.
func (s *schedule) put(e *entry) {
	if e.at >= 0 {
		heap.Fix(s, e.at)
		return
	}
	heap.Push(s, e)
}

func (s *schedule) remove(e *entry) {
	if e.at >= 0 {
		heap.Remove(s, e.at)
	}
}

func (s schedule) Len() int { return len(s) }

// Less: what is due at one time comes in an order that does not depend on how
// it was put in.
func (s schedule) Less(i, j int) bool {
	if !s[i].due.Equal(s[j].due) {
		return s[i].due.Before(s[j].due)
	}
	return s[i].compare(s[j].check) < 0
}

func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].at, s[j].at = i, j
}

// Push is for package heap.
func (s *schedule) Push(x any) {
	e := x.(*entry) //nolint:forcetypeassert // of this package's own
	e.at = len(*s)
	*s = append(*s, e)
}

// Pop is for package heap.
func (s *schedule) Pop() any {
	last := len(*s) - 1
	e := (*s)[last]
	(*s)[last] = nil
	*s, e.at = (*s)[:last], -1
	return e
}
