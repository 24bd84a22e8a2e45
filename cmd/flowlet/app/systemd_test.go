package app_test

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/cmd/flowlet/app"
	"github.com/flowlet/flowlet/pipeline"
)

func TestSystemdIsToldThatTheAgentIsReadyAliveAndStops(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "40000")
	next := func() string {
		require.NoError(t, l.SetReadDeadline(time.Now().Add(20*time.Second)))
		b := make([]byte, 100)
		n, err := l.Read(b)
		require.NoError(t, err)
		return string(b[:n])
	}
	d := start(t, t.TempDir())
	require.Equal(t, "READY=1", next())
	require.Equal(t, "WATCHDOG=1", next())
	require.Equal(t, "WATCHDOG=1", next())
	require.NoError(t, d.stop())
	last := ""
	for last != "STOPPING=1" {
		last = next()
	}
}

func TestStuckIsAStepLoopThatHasWorkAndDoesNone(t *testing.T) {
	idle, busy := pipeline.Stats{Steps: 5}, pipeline.Stats{Steps: 5, Dirty: 2}
	require.False(t, app.Stuck(idle, idle))
	require.False(t, app.Stuck(idle, busy), "it may just have come")
	require.True(t, app.Stuck(busy, busy))
	require.False(t, app.Stuck(busy, pipeline.Stats{Steps: 6, Dirty: 2}))
	require.False(t, app.Stuck(busy, idle))
}
