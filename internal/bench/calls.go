package bench

import (
	"context"
	"maps"
	"sync"

	"github.com/flowlet/flowlet/cri"
)

// calls counts the calls of a client by method.
type calls struct {
	mu sync.Mutex
	n  map[string]int
}

var _ cri.Observer = (*calls)(nil)

// Call implements cri.Observer.
func (c *calls) Call(ctx context.Context, method string) (context.Context, func(error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[method]++
	return ctx, func(error) {}
}

func (c *calls) snapshot() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}

// total is the number of all calls.
func (c *calls) total() (n int) {
	for _, m := range c.snapshot() {
		n += m
	}
	return n
}

// since returns what was called after a snapshot.
func (c *calls) since(before map[string]int) map[string]int {
	now := c.snapshot()
	for method, n := range before {
		if now[method] -= n; now[method] == 0 {
			delete(now, method)
		}
	}
	return now
}
