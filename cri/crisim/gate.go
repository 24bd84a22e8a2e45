package crisim

import (
	"context"
	"net"
	"sync"
)

// gate knows the open connections and direct calls, so that a restart can cut them, and lets no new ones in while the
// runtime is down.
type gate struct {
	mu     sync.Mutex
	down   bool
	conns  map[*gatedConn]struct{}
	direct map[*directCall]struct{}
}

type directCall struct{ cancel context.CancelCauseFunc }

// set opens or closes the gate and cuts everything when it closes.
func (g *gate) set(down bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down = down
	if !down {
		return
	}
	for c := range g.conns {
		_ = c.Conn.Close() // not c.Close, which would wait for g.mu
	}
	for c := range g.direct {
		c.cancel(errCut)
	}
	clear(g.conns)
	clear(g.direct)
}

func (g *gate) isDown() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.down
}

// bind makes the context of a direct call, which ends with errCut when the gate closes. stop has to be called.
func (g *gate) bind(ctx context.Context) (_ context.Context, stop func(), _ error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		return nil, nil, errDown
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if g.direct == nil {
		g.direct = map[*directCall]struct{}{}
	}
	call := &directCall{cancel}
	g.direct[call] = struct{}{}
	return ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.direct, call)
		cancel(nil)
	}, nil
}

func (g *gate) enter(c *gatedConn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down {
		return false
	}
	if g.conns == nil {
		g.conns = map[*gatedConn]struct{}{}
	}
	g.conns[c] = struct{}{}
	return true
}

func (g *gate) leave(c *gatedConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, c)
}

type gatedListener struct {
	net.Listener
	gate *gate
}

// Accept implements net.Listener.
func (l *gatedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		gated := &gatedConn{Conn: c, gate: l.gate}
		if l.gate.enter(gated) {
			return gated, nil
		}
		_ = c.Close()
	}
}

type gatedConn struct {
	net.Conn
	gate *gate
}

// Close implements net.Conn.
func (c *gatedConn) Close() error {
	c.gate.leave(c)
	return c.Conn.Close()
}
