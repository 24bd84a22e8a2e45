package node_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/stages/node"
)

// writer is a runtime that writes numbered lines to the log of one container.
type writer struct {
	t    require.TestingT
	path string
	file *os.File
	last int
	fail error // of the next call
	late bool  // that call does its work nevertheless
	seen int
}

func newWriter(t require.TestingT, path string) *writer {
	w := &writer{t: t, path: path}
	w.open()
	return w
}

func (w *writer) open() {
	old := w.file
	var err error
	w.file, err = os.OpenFile(w.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
	require.NoError(w.t, err)
	if old != nil {
		require.NoError(w.t, old.Close())
	}
}

func (w *writer) write(lines int) {
	for range lines {
		w.last++
		_, err := fmt.Fprintf(w.file, "line %d\n", w.last)
		require.NoError(w.t, err)
	}
}

func (w *writer) ReopenContainerLog(context.Context, string) error {
	w.seen++
	err := w.fail
	w.fail = nil
	if err == nil || w.late {
		w.open()
	}
	return err
}

// lines reads all parts of a log, the oldest first.
func lines(t require.TestingT, path string) []string {
	names, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	slices.Sort(names)
	if i := slices.Index(names, path); i >= 0 { // the log itself is the newest
		names = append(slices.Delete(names, i, i+1), path)
	}
	var out []string
	for _, name := range names {
		f, err := os.Open(name)
		require.NoError(t, err)
		var r io.Reader = f
		if strings.HasSuffix(name, ".gz") {
			r, err = gzip.NewReader(f)
			require.NoError(t, err, name)
		}
		for s := bufio.NewScanner(r); s.Scan(); {
			out = append(out, s.Text())
		}
		require.NoError(t, f.Close())
	}
	return out
}

func numbered(from, to int) (out []string) {
	for i := from; i <= to; i++ {
		out = append(out, fmt.Sprintf("line %d", i))
	}
	return out
}

func names(t require.TestingT, path string) (out []string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func limits(files int) node.LogLimits { return node.LogLimits{MaxSize: 20, MaxFiles: files} }

func rotate(t *testing.T, w *writer, files int) error {
	t.Helper()
	return node.Rotation(t.Context(), limits(files), w, node.Disk{}, node.Log{Of: "ns/p/c", ID: "c1", Path: w.path})
}

func TestRotationKeepsTheNewestPlainAndTheOthersCompressed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWriter(t, filepath.Join(t.TempDir(), "0.log"))
		defer w.file.Close()
		other := w.path + ".20200101-000000.orig"
		require.NoError(t, os.WriteFile(other, nil, 0o600))
		w.write(1)
		require.NoError(t, rotate(t, w, 4))
		require.Zero(t, w.seen, "it is not full")
		for range 6 {
			w.write(5)
			require.NoError(t, rotate(t, w, 4))
			time.Sleep(10 * time.Second)
		}
		at := func(turn int) string {
			return "0.log." + time.Now().Add(time.Duration(turn-6)*10*time.Second).Format("20060102-150405")
		}
		require.ElementsMatch(t, []string{"0.log", at(3) + ".gz", at(4) + ".gz", at(5), filepath.Base(other)}, names(t, w.path))
		require.NoError(t, os.Remove(other))
		require.Equal(t, numbered(17, 31), lines(t, w.path))
		info, err := os.Stat(w.path + strings.TrimPrefix(at(3), "0.log") + ".gz")
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o640), info.Mode(), "as the log")
	})
}

func TestLogThatIsMissingIsBegunAnew(t *testing.T) {
	w := newWriter(t, filepath.Join(t.TempDir(), "0.log"))
	defer func() { _ = w.file.Close() }()
	require.NoError(t, os.Remove(w.path))
	require.NoError(t, rotate(t, w, 5))
	require.FileExists(t, w.path)
}

func TestLogGetsItsNameBackWhenTheRuntimeDoesNotBeginAnother(t *testing.T) {
	w := newWriter(t, filepath.Join(t.TempDir(), "0.log"))
	defer func() { _ = w.file.Close() }()
	w.write(5)
	w.fail = errors.New("no descriptors left")
	require.ErrorContains(t, rotate(t, w, 5), "beginning a new log file of ns/p/c: no descriptors left")
	w.write(5)
	require.Equal(t, []string{"0.log"}, names(t, w.path))
	require.Equal(t, numbered(1, 10), lines(t, w.path))
}

func TestLogThatTheRuntimeBeganWithoutSayingSo(t *testing.T) {
	w := newWriter(t, filepath.Join(t.TempDir(), "0.log"))
	defer func() { _ = w.file.Close() }()
	w.write(5)
	w.fail, w.late = errors.New("connection lost"), true
	require.NoError(t, rotate(t, w, 5))
	w.write(5)
	require.Len(t, names(t, w.path), 2)
	require.Equal(t, numbered(1, 10), lines(t, w.path))
}

func TestClockThatWasSetBackDropsNoNewPart(t *testing.T) {
	w := newWriter(t, filepath.Join(t.TempDir(), "0.log"))
	defer func() { _ = w.file.Close() }()
	require.NoError(t, os.WriteFile(w.path+".29991231-235959", []byte("line 0\n"), 0o600))
	w.write(5)
	require.NoError(t, rotate(t, w, 5))
	require.Equal(t, []string{"0.log", "0.log.29991231-235959.gz", "0.log.30000101-000000"}, names(t, w.path))
	require.Equal(t, numbered(0, 5), lines(t, w.path))
}

func TestPartThatStillGrowsStaysAsItIs(t *testing.T) {
	w := newWriter(t, filepath.Join(t.TempDir(), "0.log"))
	defer func() { _ = w.file.Close() }()
	old := w.path + ".20200101-000000"
	require.NoError(t, os.WriteFile(old, []byte("line 0\n"), 0o600))
	w.write(5)
	d := grows{}
	err := node.Rotation(t.Context(), limits(5), w, d, node.Log{Of: "ns/p/c", ID: "c1", Path: w.path})
	require.ErrorContains(t, err, "still writes")
	require.FileExists(t, old)
	require.NoFileExists(t, old+".gz")
	require.NoFileExists(t, old+".tmp")
	require.Equal(t, 1, w.seen, "the log is rotated all the same")
}

// grows has something written to a file while it is compressed.
type grows struct{ node.Disk }

func (d grows) Gzip(from, to string) (int64, error) {
	n, err := d.Disk.Gzip(from, to)
	if err == nil {
		err = os.WriteFile(from, []byte("line 0\nline 0.5\n"), 0o600)
	}
	return n, err
}

// mortal kills the agent around its n-th change of the disk.
type mortal struct {
	node.Disk
	left  int
	after bool
}

type death struct{}

func (m *mortal) change(do func() error) error {
	m.left--
	if m.left == 0 && !m.after {
		panic(death{})
	}
	err := do()
	if m.left == 0 {
		panic(death{})
	}
	return err
}

func (m *mortal) Rename(from, to string) error {
	return m.change(func() error { return m.Disk.Rename(from, to) })
}

func (m *mortal) Remove(path string) error {
	return m.change(func() error { return m.Disk.Remove(path) })
}

func (m *mortal) Gzip(from, to string) (n int64, err error) {
	err = m.change(func() error { n, err = m.Disk.Gzip(from, to); return err })
	return n, err
}

// TestNoLineIsLost: the agent is killed between any two operations, and the
// runtime fails or loses its answer, while a container writes numbered lines.
func TestNoLineIsLost(t *testing.T) {
	if _, err := os.Stat("/dev/shm"); err == nil { // what is synced there does not wait for a disk
		t.Setenv("TMPDIR", "/dev/shm")
	}
	dir := t.TempDir()
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		path := filepath.Join(dir, fmt.Sprint(round), "0.log")
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		w := newWriter(t, path)
		defer func() { _ = w.file.Close() }()
		log := node.Log{Of: "ns/p/c", ID: "c1", Path: path}
		for range rapid.IntRange(1, 25).Draw(t, "rotations") {
			w.write(rapid.IntRange(0, 6).Draw(t, "lines"))
			w.fail, w.late = nil, rapid.Bool().Draw(t, "does it")
			if rapid.IntRange(0, 3).Draw(t, "answer") == 0 {
				w.fail = errors.New("connection lost")
			}
			m := &mortal{left: rapid.IntRange(0, 12).Draw(t, "dies at"), after: rapid.Bool().Draw(t, "after it")}
			func() {
				defer func() {
					if p := recover(); p != nil && p != (death{}) {
						panic(p)
					}
				}()
				_ = node.Rotation(context.Background(), limits(1000), w, m, log)
			}()
		}
		w.write(5)
		w.fail = nil
		for range 2 { // a rotation that is left in peace, and what a dead one left is gone
			require.NoError(t, node.Rotation(context.Background(), limits(1000), w, node.Disk{}, log))
			w.write(5)
		}
		require.Equal(t, numbered(1, w.last), lines(t, path))
	})
}

// What lies beside a log and cannot be removed does not make the log grow without end.
func TestLogGoesOnBesideWhatCannotBeRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	w := newWriter(t, path)
	defer func() { _ = w.file.Close() }()
	for _, name := range []string{".20000101-000000", ".20000101-000001.tmp"} {
		require.NoError(t, os.MkdirAll(filepath.Join(path+name, "foreign"), 0o755))
	}
	w.write(100)
	require.ErrorContains(t, rotate(t, w, 2), "tidying up the rotated logs of ns/p/c")
	require.Equal(t, 1, w.seen)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Zero(t, info.Size())
}
