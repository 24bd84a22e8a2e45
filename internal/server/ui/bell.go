package ui

import (
	"context"
	"sync"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Bell tells readers of pages that something has changed. The zero value is
// ready, and it is safe for concurrent use. It is an observer of the engine.
type Bell struct {
	mu      sync.Mutex
	readers map[chan struct{}]struct{}
}

var _ dag.Observer[pod.Key] = (*Bell)(nil)

// Ring wakes all who listen. It does not block.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.readers {
		select {
		case c <- struct{}{}:
		default: // it is awake already
		}
	}
}

// Listen returns a channel that has a value when the bell has rung since the
// last one was taken. The caller calls stop in the end.
func (b *Bell) Listen() (rang <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1) // one is enough: who wakes looks at everything
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.readers == nil {
		b.readers = map[chan struct{}]struct{}{}
	}
	b.readers[c] = struct{}{}
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.readers, c)
	}
}

// Moved implements dag.Observer.
func (b *Bell) Moved(pod.Key, dag.ID, dag.Entry, dag.Entry) { b.Ring() }

// Context implements dag.Observer.
func (*Bell) Context(ctx context.Context, _ pod.Key, _ dag.ID) context.Context { return ctx }
