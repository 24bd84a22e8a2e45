package volume_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/flowlet/flowlet/stages/volume"
)

// tree is a volume with all that may be found in one, and what is beside it.
func tree(t *testing.T) string {
	t.Helper()
	base := t.TempDir()
	v := filepath.Join(base, "volume")
	for _, dir := range []string{"volume/a/b", "outside"} {
		require.NoError(t, os.MkdirAll(filepath.Join(base, dir), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(v, "a/file"), nil, 0o600))
	require.NoError(t, unix.Mkfifo(filepath.Join(v, "fifo"), 0o600))
	for name, to := range map[string]string{
		"in": "a/b", "a/up": "..", "abs-in": filepath.Join(v, "a"), "self": "self", "dangling": "nothing",
		"out": "../outside", "a/out": "../../outside", "abs-out": filepath.Join(base, "outside"), "root": "/", "proc": "/proc/self/root", "etc": "/etc/passwd",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(v, name)))
	}
	return v
}

func TestPartsThatAreFound(t *testing.T) {
	v := tree(t)
	for name, want := range map[string]string{
		"a": "a", ".": ".", "a/./b/": "a/b", "a/file": "a/file", "in": "a/b", "a/up/in": "a/b", "abs-in": "a", "abs-in/b": "a/b", "fifo": "fifo",
	} {
		f, err := partWithin(t, v, name)
		require.NoError(t, err, name)
		is, err := f.Stat()
		require.NoError(t, err)
		to, err := os.Lstat(filepath.Join(v, want))
		require.NoError(t, err)
		require.True(t, os.SameFile(is, to), name)
		require.NoError(t, f.Close())
	}
}

// partWithin fails when opening blocks, as it would at a FIFO.
func partWithin(t *testing.T, in, name string) (*os.File, error) {
	t.Helper()
	type result struct {
		f   *os.File
		err error
	}
	done := make(chan result, 1)
	go func() {
		f, err := volume.OpenPart(in, name)
		done <- result{f, err}
	}()
	select {
	case r := <-done:
		return r.f, r.err
	case <-time.After(time.Minute):
		require.FailNow(t, "it blocks", name)
		return nil, nil
	}
}

func TestPartsThatLeadOut(t *testing.T) {
	v := tree(t)
	for name, want := range map[string]string{
		"out": "leads out", "a/out": "leads out", "a/up/out": "leads out", "out/x": "leads out", "abs-out": "leads out", "abs-out/x": "leads out",
		"root": "leads out", "root/etc": "leads out", "proc": "leads out", "etc": "leads out",
		"self": "symbolic links", "dangling": "symbolic links", "dangling/x": "symbolic links", "a/file/x": "no directory", "fifo/x": "no directory",
	} {
		_, err := volume.OpenPart(v, name)
		require.ErrorContains(t, err, want, name)
	}
	entries, err := os.ReadDir(filepath.Join(v, "../outside"))
	require.NoError(t, err)
	require.Empty(t, entries, "nothing is made outside")
	require.NoFileExists(t, filepath.Join(v, "nothing"))
}

func TestMissingPartsAreMadeLikeTheVolume(t *testing.T) {
	v := tree(t)
	require.NoError(t, os.Chmod(v, 0o777|fs.ModeSetgid|fs.ModeSticky))
	for name, made := range map[string][]string{"x/y/z": {"x", "x/y", "x/y/z"}, "in/n": {"a/b/n"}, "x/other": {"x/other"}} {
		f, err := volume.OpenPart(v, name)
		require.NoError(t, err)
		is, err := f.Stat()
		require.NoError(t, err)
		for _, m := range made {
			info, err := os.Lstat(filepath.Join(v, m))
			require.NoError(t, err)
			require.Equal(t, 0o777|fs.ModeDir|fs.ModeSetgid|fs.ModeSticky, info.Mode(), "whatever the umask: %s", m)
		}
		to, err := os.Lstat(filepath.Join(v, made[len(made)-1]))
		require.NoError(t, err)
		require.True(t, os.SameFile(is, to))
		require.NoError(t, f.Close())
	}
	_, err := volume.OpenPart(filepath.Join(v, "a/file"), "x")
	require.ErrorContains(t, err, "no directory", "the volume is a file")
}

// TestLinksThatAreSwappedMeanwhile: somebody exchanges a directory with a link
// that leads out, as fast as the kernel can. Whatever is opened or made is in
// the volume.
func TestLinksThatAreSwappedMeanwhile(t *testing.T) {
	v := tree(t)
	outside, err := os.Stat(filepath.Join(v, "../outside"))
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(v, "../outside/b"), 0o755))
	swap := func() {
		_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(v, "a"), unix.AT_FDCWD, filepath.Join(v, "abs-out"), unix.RENAME_EXCHANGE)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				swap()
			}
		}
	}()
	inside, refused := 0, 0
	for i := range 2000 {
		name := []string{"a", "a/b", "a/new"}[i%3]
		if i%7 == 0 {
			swap() // the other may not get the processor
		}
		f, err := volume.OpenPart(v, name)
		if err != nil {
			refused++
			continue
		}
		inside++
		is, err := f.Stat()
		require.NoError(t, err)
		require.False(t, os.SameFile(is, outside))
		at, err := os.Readlink(filepath.Join("/proc/self/fd", strconv.Itoa(int(f.Fd()))))
		require.NoError(t, err)
		require.Contains(t, at, v+"/", "%s", name)
		require.NoError(t, f.Close())
	}
	close(stop)
	<-done
	require.Positive(t, inside)
	require.Positive(t, refused)
	entries, err := os.ReadDir(filepath.Join(v, "../outside"))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is made outside")
}
