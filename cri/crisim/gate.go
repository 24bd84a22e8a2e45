package crisim

import (
	"net"
	"sync"
)

// gate knows the open connections, so that a restart can cut them, and lets no new ones in while the runtime is down.
type gate struct {
	mu    sync.Mutex
	down  bool
	conns map[*gatedConn]struct{}
}

// set opens or closes the gate and cuts every connection when it closes.
func (g *gate) set(down bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.down = down
	if down {
		for c := range g.conns {
			_ = c.Conn.Close() // not c.Close, which would wait for g.mu
		}
		clear(g.conns)
	}
}

func (g *gate) isDown() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.down
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
