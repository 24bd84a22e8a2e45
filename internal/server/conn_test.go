package server_test

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"testing"

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
