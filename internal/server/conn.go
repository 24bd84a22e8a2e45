package server

import (
	"context"
	"errors"
	"net"
)

// watched hands out connections that tell when they are gone, and that are
// closed when cut ends: a server forgets those that a request has upgraded.
type watched struct {
	net.Listener
	cut context.Context
}

// Accept implements net.Listener.
func (l watched) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &watchedConn{Conn: c, gone: func(error) {}, uncut: context.AfterFunc(l.cut, func() { _ = c.Close() })}, nil
}

// watchedConn ends a context when the other side has closed it, which the
// server does itself only until a request upgrades the connection. Somebody
// has to read, as all do who serve an upgraded connection.
type watchedConn struct {
	net.Conn
	gone  context.CancelCauseFunc
	uncut func() bool
}

// watch makes the context of a connection's requests. It is called before
// anything is read. Another kind of connection is left to the server.
func watch(ctx context.Context, c net.Conn) context.Context {
	if w, ok := c.(*watchedConn); ok {
		ctx, w.gone = context.WithCancelCause(ctx)
	}
	return ctx
}

// Read implements net.Conn.
func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	var temporary net.Error
	if err != nil && (!errors.As(err, &temporary) || !temporary.Timeout()) {
		c.gone(errors.Join(errClientGone, err))
	}
	return n, err
}

// Close implements net.Conn.
func (c *watchedConn) Close() error {
	c.gone(errClientGone)
	c.uncut()
	return c.Conn.Close()
}

var errClientGone = errors.New("the client has closed its connection")
