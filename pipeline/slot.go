package pipeline

import (
	"cmp"
	"slices"
	"time"
)

// slot is what the pipeline keeps of one key.
type slot[K comparable, S any] struct {
	key    K
	number uint64 // of its birth: an order that chance does not decide
	state  S
	cause  uint64 // of the newest event
	reads  []string
	wake   time.Time

	priority int
	turn     uint64 // when it became dirty, among all
	dirtyAt  int    // index in the dirty set, -1: not in
	wakeAt   int    // index among the wake-ups, -1: not in
}

func (s *slot[K, S]) dirty() bool { return s.dirtyAt >= 0 }

// newDirtySet orders slots by priority, then by when they became dirty.
func newDirtySet[K comparable, S any]() ordered[K, S] {
	return ordered[K, S]{sorted[K, S]{
		less: func(a, b *slot[K, S]) bool {
			if a.priority != b.priority {
				return a.priority > b.priority
			}
			return a.turn < b.turn
		},
		at: func(s *slot[K, S]) *int { return &s.dirtyAt },
	}}
}

// newWakeUps orders slots by when they are to be woken.
func newWakeUps[K comparable, S any]() ordered[K, S] {
	return ordered[K, S]{sorted[K, S]{
		less: func(a, b *slot[K, S]) bool {
			if !a.wake.Equal(b.wake) {
				return a.wake.Before(b.wake)
			}
			return a.number < b.number
		},
		at: func(s *slot[K, S]) *int { return &s.wakeAt },
	}}
}

// readers says who read which topic. Each slot knows its own topics.
type readers[K comparable, S any] map[string]map[*slot[K, S]]struct{}

// set replaces the topics that a slot reads.
func (r readers[K, S]) set(s *slot[K, S], topics []string) {
	if slices.Equal(s.reads, topics) {
		return // as nearly always
	}
	for _, topic := range s.reads {
		delete(r[topic], s)
		if len(r[topic]) == 0 {
			delete(r, topic)
		}
	}
	for _, topic := range topics {
		if r[topic] == nil {
			r[topic] = make(map[*slot[K, S]]struct{})
		}
		r[topic][s] = struct{}{}
	}
	s.reads = topics
}

// of returns who read a topic, the oldest key first.
func (r readers[K, S]) of(topic string) []*slot[K, S] {
	all := make([]*slot[K, S], 0, len(r[topic]))
	for s := range r[topic] {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *slot[K, S]) int { return cmp.Compare(a.number, b.number) })
	return all
}
