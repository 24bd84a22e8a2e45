package usage_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/flowlet/flowlet/internal/usage"
)

func write(t *testing.T, path string, size int) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
}

func measured(t *testing.T, dir string) usage.Disk {
	t.Helper()
	d, err := usage.Walk(context.Background(), dir)
	require.NoError(t, err)
	return d
}

func TestWalkCountsWhatFilesTake(t *testing.T) {
	dir := t.TempDir()
	empty := measured(t, dir)
	require.EqualValues(t, 1, empty.Inodes, "the directory itself")
	write(t, filepath.Join(dir, "a"), 1<<20)
	write(t, filepath.Join(dir, "deep/er/b"), 1<<20)
	d := measured(t, dir)
	require.EqualValues(t, 1+2+2, d.Inodes, "two directories, two files")
	require.GreaterOrEqual(t, d.Bytes, int64(2<<20))
	require.Less(t, d.Bytes, int64(2<<20+64<<10))
}

func TestWalkCountsAFileWithSeveralLinksOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), 1<<20)
	before := measured(t, dir)
	require.NoError(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "b")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	require.NoError(t, os.Link(filepath.Join(dir, "a"), filepath.Join(dir, "sub/c")))
	after := measured(t, dir)
	require.Equal(t, before.Inodes+1, after.Inodes)
	require.Less(t, after.Bytes, before.Bytes+64<<10)
}

func TestWalkDoesNotCountWhatSparseFilesPromise(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tree/sparse")
	write(t, path, 0)
	require.NoError(t, os.Truncate(path, 1<<40))
	require.Less(t, measured(t, filepath.Dir(path)).Bytes, int64(1<<20))
}

func TestWalkFollowsNoLinksOutOfTheTree(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "outside/big"), 4<<20)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tree"), 0o755))
	require.NoError(t, os.Symlink(filepath.Join(dir, "outside"), filepath.Join(dir, "tree/link")))
	require.NoError(t, os.Symlink("/", filepath.Join(dir, "tree/root")))
	d := measured(t, filepath.Join(dir, "tree"))
	require.EqualValues(t, 3, d.Inodes)
	require.Less(t, d.Bytes, int64(1<<20))
}

func TestWalkThatIsCutReturnsALowerBound(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a/b"), 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	d, err := usage.Walk(ctx, dir)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, dir)
	require.Positive(t, d.Inodes)
}

func TestWalkOfWhatIsNotThere(t *testing.T) {
	require.Zero(t, measured(t, filepath.Join(t.TempDir(), "none")))
}

// chain makes directories in each other, each with another one beside the next, and returns the lowest, open.
func chain(t *testing.T, dir string, levels int) (lowest int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	for range levels {
		require.NoError(t, unix.Mkdirat(at, "beside", 0o755))
		require.NoError(t, unix.Mkdirat(at, "down", 0o755))
		next, err := unix.Openat(at, "down", unix.O_PATH|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Close(at))
		at = next
	}
	return at
}

// A path of a tree may be longer than the kernel takes, and going from its top to each directory would take for ever.
func TestWalkOfADeepTree(t *testing.T) {
	dir, levels := t.TempDir(), 2000
	lowest := chain(t, dir, levels)
	big, err := unix.Openat(lowest, "big", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	require.NoError(t, err)
	_, err = unix.Write(big, make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, errors.Join(unix.Close(big), unix.Close(lowest)))
	d := measured(t, dir)
	require.EqualValues(t, 1+2*levels+1, d.Inodes)
	require.Greater(t, d.Bytes, int64(1<<20))
}

// Whatever is moved while a tree is measured: the measurement ends, never leaves the tree, and counts what was not moved.
func TestWalkWhileDirectoriesAreMoved(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "big"), 8<<20)
	dir := filepath.Join(outside, "tree")
	for i := range 50 {
		write(t, filepath.Join(dir, "stays", fmt.Sprint(i), "a/b/file"), 1)
		write(t, filepath.Join(dir, "moves", fmt.Sprint(i), "a/b/file"), 1)
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		var errs []error
		for i := 0; ; i = (i + 1) % 50 {
			select {
			case <-stop:
				stopped <- errors.Join(errs...)
				return
			default:
			}
			from, to := filepath.Join(dir, "moves", fmt.Sprint(i), "a/b"), filepath.Join(outside, "elsewhere")
			if err := errors.Join(os.Rename(from, to), os.Rename(to, from)); err != nil {
				errs = append(errs, err)
			}
		}
	}()
	for range 20 {
		d := measured(t, dir)
		require.GreaterOrEqual(t, d.Inodes, int64(1+1+50*4+1+50*2))
		require.LessOrEqual(t, d.Inodes, int64(1+2*(1+50*4)))
		require.Less(t, d.Bytes, int64(8<<20))
	}
	close(stop)
	require.NoError(t, <-stopped)
}
