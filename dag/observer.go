package dag

import "context"

// Observer is told of every move of every stage. Tracing, metrics and the
// journal are observers.
type Observer[K comparable] interface {
	// Moved is called once per change of an entry, in the order of changes,
	// with the engine's lock held: it must not block and must not call the
	// engine. from is the zero Entry when the stage is new, to is the zero
	// Entry when it is forgotten.
	Moved(k K, id ID, from, to Entry)
	// Context returns the context for a run, for instance with a parent span
	// for the calls that it makes. It is called in the run's goroutine.
	Context(ctx context.Context, k K, id ID) context.Context
}
