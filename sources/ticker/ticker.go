// Package ticker is the source of what has to be looked at now and then: it
// emits one event each period.
package ticker

import (
	"context"
	"time"

	"github.com/flowlet/flowlet/pipeline"
)

// Source emits an event each period. Ticks do not drift: they are whole
// periods after the time at which Run was called. Ticks that fell due while
// the machine slept or emit was busy are one tick.
type Source[K comparable, C any] struct {
	// Called is the source's name.
	Called string
	// Period lies between two events. It must be positive.
	Period time.Duration
	// AtOnce adds an event at the start of Run. Without it the first comes
	// after one period.
	AtOnce bool
	// Event makes the event of a tick; tick is the time that it was due. Seen
	// is set to that time when it is zero.
	Event func(tick time.Time) pipeline.Event[K, C]
}

// Name returns Called.
func (s *Source[K, C]) Name() string { return s.Called }

// Run emits until ctx ends and returns its cause. It may be called again after
// it returned. A ticker knows nothing beforehand, so Synced is emitted first.
func (s *Source[K, C]) Run(ctx context.Context, emit func(pipeline.Event[K, C])) error {
	emit(pipeline.Event[K, C]{Topic: pipeline.Synced(s.Called), Source: s.Called, Seen: time.Now()})
	due := time.Now()
	if !s.AtOnce {
		due = due.Add(s.Period)
	}
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		s.tick(due, emit)
		due = s.after(due, time.Now())
		timer.Reset(time.Until(due))
	}
}

func (s *Source[K, C]) tick(due time.Time, emit func(pipeline.Event[K, C])) {
	ev := s.Event(due)
	if ev.Source == "" {
		ev.Source = s.Called
	}
	if ev.Seen.IsZero() {
		ev.Seen = due
	}
	emit(ev)
}

// after returns the first tick after due that lies in the future.
func (s *Source[K, C]) after(due, now time.Time) time.Time {
	due = due.Add(s.Period)
	if late := now.Sub(due); late >= 0 {
		due = due.Add((late/s.Period + 1) * s.Period)
	}
	return due
}
