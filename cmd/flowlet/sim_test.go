package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSimReplacesADeadSocketOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sim.sock")
	dead, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	require.NoError(t, err)
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())

	l, err := listenUnix(path)
	require.NoError(t, err, "nobody answers there")
	defer l.Close()
	_, err = listenUnix(path)
	require.EqualError(t, err, "--listen: somebody already answers on "+path)

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	_, err = listenUnix(file)
	require.ErrorContains(t, err, "--listen: ")
	require.FileExists(t, file, "what is no socket is not touched")
}
