package server_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/server"
)

// A request that took its connection over still learns that it is gone.
func TestContextOfAnUpgradedRequestEndsWithItsConnection(t *testing.T) {
	root := t.TempDir()
	cause := make(chan error, 1)
	serve(t, root, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			cause <- err
			return
		}
		defer c.Close()
		_, _ = c.Write([]byte("taken\n"))
		go func() { _, _ = c.Read(make([]byte, 1)) }()
		<-r.Context().Done()
		cause <- context.Cause(r.Context())
	}))
	c, err := net.Dial("unix", filepath.Join(root, server.SocketName))
	require.NoError(t, err)
	_, err = c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 6))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.ErrorContains(t, <-cause, "the client has closed its connection")
}

// pipes is a listener in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (*pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// A client that does not read holds up the end of the server for seconds, not for ever.
func TestServeEndsBesideClientsThatDoNotRead(t *testing.T) {
	plain := func(w http.ResponseWriter) io.Writer { return w }
	upgraded := func(w http.ResponseWriter) io.Writer {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return nil
		}
		return c
	}
	for name, writer := range map[string]func(http.ResponseWriter) io.Writer{"plain": plain, "upgraded": upgraded} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				done := make(chan error, 1)
				go func() {
					done <- server.Serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						out, text := writer(w), make([]byte, 1<<16)
						for {
							if _, err := out.Write(text); err != nil {
								return
							}
						}
					}))
				}()
				client, theirs := net.Pipe()
				defer client.Close()
				l.conns <- theirs
				_, err := client.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
				require.NoError(t, err)
				synctest.Wait()
				began := time.Now()
				cancel()
				require.NoError(t, <-done)
				require.LessOrEqual(t, time.Since(began), 6*time.Second)
			})
		})
	}
}
