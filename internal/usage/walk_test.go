package usage_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

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
