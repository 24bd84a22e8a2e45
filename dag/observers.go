package dag

import "context"

// NopObserver observes nothing. Observers with use for one method only embed it.
type NopObserver[K comparable] struct{}

var _ Observer[string] = NopObserver[string]{}

// Moved does nothing.
func (NopObserver[K]) Moved(K, ID, Entry, Entry) {}

// Context returns ctx.
func (NopObserver[K]) Context(ctx context.Context, _ K, _ ID) context.Context { return ctx }

// Tee returns an observer that tells all of the given ones, in their order; each
// gets the context that the one before it returned.
func Tee[K comparable](observers ...Observer[K]) Observer[K] { return tee[K](observers) }

type tee[K comparable] []Observer[K]

func (t tee[K]) Moved(k K, id ID, from, to Entry) {
	for _, o := range t {
		o.Moved(k, id, from, to)
	}
}

func (t tee[K]) Context(ctx context.Context, k K, id ID) context.Context {
	for _, o := range t {
		ctx = o.Context(ctx, k, id)
	}
	return ctx
}
