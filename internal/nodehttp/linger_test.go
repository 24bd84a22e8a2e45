package nodehttp_test

import (
	"net"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// lingerOf reads SO_LINGER of a connection.
func lingerOf(t *testing.T, conn *net.TCPConn) (on, secs int32) {
	t.Helper()
	raw, err := conn.SyscallConn()
	require.NoError(t, err)
	var l unix.Linger
	size := uint32(unix.SizeofLinger)
	err = raw.Control(func(fd uintptr) {
		_, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_LINGER,
			uintptr(unsafe.Pointer(&l)), uintptr(unsafe.Pointer(&size)), 0) //nolint:gosec // x/sys has no getter
		require.Zero(t, errno)
	})
	require.NoError(t, err)
	return l.Onoff, l.Linger
}
