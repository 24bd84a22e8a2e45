package pipelinetest

import (
	"context"
	"sync"
	"time"

	"github.com/flowlet/flowlet/pipeline"
)

// Action is one thing that a scripted source does. An error ends the run.
type Action[K comparable, C any] func(ctx context.Context, emit func(pipeline.Event[K, C])) error

// Source is a source that plays a script. Its first run does what Script[0]
// says, the second what Script[1] says, and so on; the last one is repeated. A
// run that comes to the end of its list returns nil.
type Source[K comparable, C any] struct {
	Called string
	Script [][]Action[K, C]

	mu     sync.Mutex
	starts []time.Time
}

var _ pipeline.Source[string, int] = (*Source[string, int])(nil)

// Name returns Called.
func (s *Source[K, C]) Name() string { return s.Called }

// Run plays the next list of the script.
func (s *Source[K, C]) Run(ctx context.Context, emit func(pipeline.Event[K, C])) error {
	s.mu.Lock()
	n := min(len(s.starts), len(s.Script)-1)
	s.starts = append(s.starts, time.Now())
	s.mu.Unlock()
	for _, do := range s.Script[n] {
		if err := do(ctx, emit); err != nil {
			return err
		}
	}
	return nil
}

// Starts returns when runs began.
func (s *Source[K, C]) Starts() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time(nil), s.starts...)
}

// Emits emits events.
func Emits[K comparable, C any](events ...pipeline.Event[K, C]) Action[K, C] {
	return func(_ context.Context, emit func(pipeline.Event[K, C])) error {
		for _, ev := range events {
			emit(ev)
		}
		return nil
	}
}

// Syncs emits the topic that says that all is known.
func Syncs[K comparable, C any](source string) Action[K, C] {
	return Emits(pipeline.Event[K, C]{Topic: pipeline.Synced(source)})
}

// Waits lets time pass, and ends the run when ctx ends.
func Waits[K comparable, C any](d time.Duration) Action[K, C] {
	return func(ctx context.Context, _ func(pipeline.Event[K, C])) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(d):
			return nil
		}
	}
}

// Fails ends the run with an error.
func Fails[K comparable, C any](err error) Action[K, C] {
	return func(context.Context, func(pipeline.Event[K, C])) error { return err }
}

// Panics panics.
func Panics[K comparable, C any](value any) Action[K, C] {
	return func(context.Context, func(pipeline.Event[K, C])) error { panic(value) }
}

// StaysUntilStopped waits for the end of ctx.
func StaysUntilStopped[K comparable, C any]() Action[K, C] {
	return func(ctx context.Context, _ func(pipeline.Event[K, C])) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
}
