package devnode_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/test/devnode"
)

func TestATakenPortIsReplaced(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, free.Close())

	a, b := taken.Addr().(*net.TCPAddr).Port, free.Addr().(*net.TCPAddr).Port
	at, err := devnode.FreePorts(t.Context(), a, b)
	require.NoError(t, err)
	require.Len(t, at, 2)
	require.NotEqual(t, taken.Addr().String(), at[a])
	require.Equal(t, free.Addr().String(), at[b])
	for _, address := range at {
		l, err := net.Listen("tcp", address)
		require.NoError(t, err, "it is not free")
		require.NoError(t, l.Close())
	}
}
