package probe

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/pipeline"
)

// Name is the name of the source.
const Name = "probe"

// Due is a check that fell due.
type Due struct {
	Key  pod.Key
	ID   string // of the container
	Kind string // of the probe
	At   time.Time
}

// Source emits an event for each check when it falls due. New makes one; its
// methods may be called concurrently and never block for long.
type Source[C any] struct {
	event func(Due) pipeline.Event[pod.Key, C]

	mu     sync.Mutex
	checks map[check]*entry
	byKey  map[pod.Key]map[check]*entry
	heap   schedule
	// earlier tells Run that the first check of the heap is another one. One
	// token is enough: Run then looks at all there is.
	earlier chan struct{}
}

var _ pipeline.Source[pod.Key, any] = (*Source[any])(nil)

// New returns a source that makes its events by event.
func New[C any](event func(Due) pipeline.Event[pod.Key, C]) *Source[C] {
	return &Source[C]{
		event: event, checks: map[check]*entry{}, byKey: map[pod.Key]map[check]*entry{}, earlier: make(chan struct{}, 1),
	}
}

// Set says when a check is due next; the zero time: it is not. A check is
// emitted once for each time that it is due: setting the time that was emitted
// last does nothing, so a step may set what it knows again and again.
func (s *Source[C]) Set(k pod.Key, id, kind string, due time.Time) {
	c := check{k, id, kind}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.checks[c]
	switch {
	case due.IsZero():
		if e != nil {
			s.drop(e)
		}
		return
	case e == nil:
		e = &entry{check: c, due: due, at: -1}
		s.add(e)
	case e.due.Equal(due):
		return
	}
	e.due = due
	s.heap.put(e)
	if s.heap[0] == e {
		s.wake()
	}
}

// Drop forgets all checks of these keys.
func (s *Source[C]) Drop(keys ...pod.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		for _, e := range s.byKey[k] {
			s.drop(e)
		}
	}
}

// Waiting returns how many checks have a time at which they will fall due.
func (s *Source[C]) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.heap)
}

// Name returns the source's name.
func (s *Source[C]) Name() string { return Name }

// Run emits what falls due until ctx ends, and returns its cause. It may be
// called again after it returned; what fell due meanwhile is emitted at once.
func (s *Source[C]) Run(ctx context.Context, emit func(pipeline.Event[pod.Key, C])) error {
	emit(pipeline.Event[pod.Key, C]{Topic: pipeline.Synced(Name), Source: Name, Seen: time.Now()})
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		case <-s.earlier:
		}
		for {
			due, next, ok := s.take(time.Now())
			if !ok {
				timer.Stop()
				if !next.IsZero() {
					timer.Reset(time.Until(next))
				}
				break
			}
			s.tell(due, emit)
		}
	}
}

func (s *Source[C]) tell(due Due, emit func(pipeline.Event[pod.Key, C])) {
	ev := s.event(due)
	ev.Source = Name
	if ev.Seen.IsZero() {
		ev.Seen = time.Now()
	}
	emit(ev)
}

// take takes the first check out of the heap if it is due at now, and else
// says when it will be; zero: there is none.
func (s *Source[C]) take(now time.Time) (due Due, next time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.heap) == 0 {
		return Due{}, time.Time{}, false
	}
	if e := s.heap[0]; e.due.After(now) {
		return Due{}, e.due, false
	}
	e := heap.Pop(&s.heap).(*entry) //nolint:forcetypeassert // the heap holds nothing else
	return Due{Key: e.key, ID: e.id, Kind: e.kind, At: e.due}, time.Time{}, true
}

func (s *Source[C]) add(e *entry) {
	s.checks[e.check] = e
	of := s.byKey[e.key]
	if of == nil {
		of = map[check]*entry{}
		s.byKey[e.key] = of
	}
	of[e.check] = e
}

func (s *Source[C]) drop(e *entry) {
	delete(s.checks, e.check)
	delete(s.byKey[e.key], e.check)
	if len(s.byKey[e.key]) == 0 {
		delete(s.byKey, e.key)
	}
	s.heap.remove(e)
}

func (s *Source[C]) wake() {
	select {
	case s.earlier <- struct{}{}:
	default:
	}
}
