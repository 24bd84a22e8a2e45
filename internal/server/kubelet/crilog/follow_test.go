package crilog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/internal/server/kubelet/crilog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// container is one that logs, its runtime, and who rotates its log.
type container struct {
	path    string
	files   []*os.File // open for writing: the last is the log, unless a rotation is under way; those before are left
	lines   int
	parts   int
	running atomic.Bool
}

func (c *container) begin() error {
	f, err := os.OpenFile(c.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	c.files = append(c.files, f)
	return err
}

// say writes a line in one piece or, as it may happen, in two.
func (c *container) say(cut int) error {
	c.lines++
	text := fmt.Sprintf("2026-01-02T03:04:05Z stdout F line %d\n", c.lines)
	cut = min(cut, len(text))
	f := c.files[0] // the runtime writes to what it opened first until it has let go
	_, err := f.WriteString(text[:cut])
	if _, more := f.WriteString(text[cut:]); more != nil {
		return more
	}
	return err
}

func (c *container) do(op, cut int) error {
	switch {
	case op == 0 && len(c.files) == 1: // the agent renames
		c.parts++
		return errors.Join(os.Rename(c.path, fmt.Sprintf("%s.20260102-%06d", c.path, c.parts)), c.begin())
	case op <= 1 && len(c.files) > 1: // the runtime lets go of the old file, with or without a last word
		err := c.files[0].Close()
		c.files = c.files[1:]
		return err
	case op == 2:
		time.Sleep(time.Millisecond)
		return nil
	}
	return c.say(cut)
}

// begun is an output that tells of its first line.
type begun struct {
	bytes.Buffer
	once  sync.Once
	first chan struct{}
}

func (b *begun) Write(p []byte) (int, error) {
	b.once.Do(func() { close(b.first) })
	return b.Buffer.Write(p)
}

// Whoever follows a log sees every line once, in order, whenever its files are rotated and however late the last line
// comes into the old one.
func TestFollowAcrossRotationsAtAnyMoment(t *testing.T) {
	dir, run := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		c := &container{path: filepath.Join(dir, fmt.Sprint(run), "0.log")}
		require.NoError(t, os.Mkdir(filepath.Dir(c.path), 0o700))
		c.running.Store(true)
		require.NoError(t, c.begin())
		require.NoError(t, c.say(0))
		out := begun{first: make(chan struct{})}
		ended := make(chan error, 1)
		go func() {
			ended <- crilog.Read(context.Background(), c.path, crilog.Options{Running: c.running.Load}, &out)
		}()
		<-out.first
		ops := rapid.SliceOfN(rapid.IntRange(0, 6), 1, 30).Draw(t, "what happens")
		cuts := rapid.SliceOfN(rapid.IntRange(0, 45), len(ops), len(ops)).Draw(t, "where a line is cut")
		var failed error
		for i, op := range ops {
			failed = errors.Join(failed, c.do(op, cuts[i]))
		}
		c.running.Store(false)
		failed = errors.Join(failed, c.say(cuts[0])) // by a runtime that is slower than its event
		for _, f := range c.files {
			failed = errors.Join(failed, f.Close())
		}
		require.NoError(t, failed)
		require.NoError(t, <-ended)
		var want strings.Builder
		for i := range c.lines {
			fmt.Fprintf(&want, "line %d\n", i+1)
		}
		require.Equal(t, want.String(), out.String())
	})
}

// A writer that is slow to let go of a file after its container has ended is waited for.
func TestFollowWaitsForTheLastWord(t *testing.T) {
	c := &container{path: filepath.Join(t.TempDir(), "0.log")}
	require.NoError(t, c.begin())
	require.NoError(t, c.say(0))
	r, w := io.Pipe()
	go func() {
		w.CloseWithError(crilog.Read(t.Context(), c.path, crilog.Options{Running: c.running.Load}, w))
	}()
	buf := make([]byte, 100)
	n, err := r.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "line 1\n", string(buf[:n]))
	require.NoError(t, c.say(10))
	require.NoError(t, c.files[0].Close())
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "line 2\n", string(rest))
}

// The next file is the part that was rotated after the one that is read, also when that one is gone.
func TestFollowOfASlowReaderOverTwoRotations(t *testing.T) {
	for name, gone := range map[string]bool{"the own part is there": false, "the own part was removed": true} {
		t.Run(name, func(t *testing.T) {
			c := &container{path: filepath.Join(t.TempDir(), "0.log")}
			require.NoError(t, c.begin())
			require.NoError(t, c.say(0))
			r, w := io.Pipe() // the reader waits in its first line
			go func() {
				w.CloseWithError(crilog.Read(t.Context(), c.path, crilog.Options{Running: c.running.Load}, w))
			}()
			buf := make([]byte, 1)
			_, err := r.Read(buf)
			require.NoError(t, err)
			for range 2 {
				require.NoError(t, c.do(0, 0))
				require.NoError(t, c.do(1, 0))
				require.NoError(t, c.say(0))
			}
			if gone {
				require.NoError(t, os.Remove(c.path+".20260102-000001"))
			}
			require.NoError(t, c.files[0].Close())
			rest, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Equal(t, "ine 1\nline 2\nline 3\n", string(rest))
		})
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	c := &container{path: filepath.Join(t.TempDir(), "0.log")}
	require.NoError(t, c.begin())
	defer c.files[0].Close()
	c.running.Store(true)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	require.ErrorIs(t, crilog.Read(ctx, c.path, crilog.Options{Running: c.running.Load}, io.Discard), cause)
}
