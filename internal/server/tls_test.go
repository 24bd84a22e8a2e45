package server_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/server"
)

// A listener of another kind works too, and its requests end with their connections.
func TestServeOnTLS(t *testing.T) {
	pair := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
	pair.Close()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	gone, done := make(chan error, 1), make(chan error, 1)
	go func() {
		done <- server.Serve(ctx, tls.NewListener(inner, pair.TLS), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "hello")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			gone <- context.Cause(r.Context())
		}))
	}()
	c, err := tls.Dial("tcp", inner.Addr().String(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test
	require.NoError(t, err)
	_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	answer := make([]byte, 15)
	_, err = io.ReadFull(c, answer)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 200 OK", string(answer))
	require.NoError(t, c.Close())
	require.ErrorContains(t, <-gone, "the client has closed its connection")
	cancel(errors.New("the test is over"))
	require.NoError(t, <-done)
}
