package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/sourcegraph/conc/panics"
)

// Delays before a source is run again, when Options does not say.
const (
	defaultRestartMin = time.Second
	defaultRestartMax = time.Minute
)

// errReturned stands in for the error of a source that returned none.
var errReturned = errors.New("returned although it was not asked to")

// source is a source with its record; the record is guarded by the pipeline's
// mutex.
type source[K comparable, C any] struct {
	Source[K, C]

	synced   bool
	restarts int
	err      error
	retryAt  time.Time // zero: it runs
}

// keepRunning runs a source until ctx ends, again and again if it returns.
func (p *Pipeline[K, C, S]) keepRunning(ctx context.Context, s *source[K, C]) {
	delays := p.restartDelays()
	for {
		began := time.Now()
		err := runSource(ctx, s, p.emitFor(s.Name()))
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > delays.MaxInterval {
			delays.Reset()
		}
		delay := min(delays.NextBackOff(), delays.MaxInterval)
		p.note(s, err, time.Now().Add(delay))
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
		p.noteRestart(s)
	}
}

func (p *Pipeline[K, C, S]) restartDelays() *backoff.ExponentialBackOff {
	initial, longest := p.opts.RestartMin, p.opts.RestartMax
	if initial <= 0 {
		initial = defaultRestartMin
	}
	if longest <= 0 {
		longest = defaultRestartMax
	}
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(initial), backoff.WithMaxInterval(longest), backoff.WithMultiplier(2),
		backoff.WithRandomizationFactor(0), backoff.WithMaxElapsedTime(0))
}

// runSource runs a source once. The error is never nil.
func runSource[K comparable, C any](ctx context.Context, s Source[K, C], emit func(Event[K, C])) error {
	err := errReturned
	p := panics.Try(func() {
		if e := s.Run(ctx, emit); e != nil {
			err = e
		}
	})
	if p != nil {
		err = p.AsError()
	}
	return fmt.Errorf("source %s: %w", s.Name(), err)
}

// emitFor returns an Emit that signs events with the source's name.
func (p *Pipeline[K, C, S]) emitFor(name string) func(Event[K, C]) {
	return func(ev Event[K, C]) {
		if ev.Source == "" {
			ev.Source = name
		}
		p.Emit(ev)
	}
}

func (p *Pipeline[K, C, S]) note(s *source[K, C], err error, retryAt time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.err, s.retryAt = err, retryAt
}

func (p *Pipeline[K, C, S]) noteRestart(s *source[K, C]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.restarts++
	s.retryAt = time.Time{}
}
