// Package crilog reads the log files that container runtimes write in the form of the CRI, and follows them over
// rotations: rename, then a new file, in that order, with a last word into the old one at any time before its writer closes it.
package crilog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"
)

// Options say what of a log is wanted.
type Options struct {
	Tail       *int64    // lines of the file to begin with, the parts of a long line counted each; nil: all
	LimitBytes *int64    // of output; nil: all
	Since      time.Time // lines before are left out
	Timestamps bool      // a time before each line, in nanoseconds
	Stream     string    // Stdout, Stderr, anything else for both
	// Running makes the reader follow: it says whether more may be logged, and is asked at least once a second. Nil: what
	// is there is read, to its end.
	Running func() bool
}

// Read writes the log at path to out, line by line. With Options.Running it returns when that says no and all was
// read, or with the cause of ctx. What was rotated before is not read.
func Read(ctx context.Context, path string, o Options, out io.Writer) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	r := &reader{path: path, w: newWriter(out, o)}
	r.use(f)
	defer func() { err = errors.Join(err, r.file.Close()) }()
	if o.Tail != nil {
		start, err := tail(f, *o.Tail)
		if err != nil {
			return fmt.Errorf("finding the last lines of %s: %w", path, err)
		}
		if _, err = f.Seek(start, io.SeekStart); err != nil {
			return err
		}
	}
	if o.Running == nil {
		lines := int64(math.MaxInt64)
		if o.Tail != nil {
			lines = *o.Tail
		}
		if err = r.drain(ctx, lines); err == nil {
			err = r.flush()
		}
	} else {
		err = r.follow(ctx)
	}
	if errors.Is(err, errFull) {
		return nil
	}
	return err
}

// reader reads one file after the other.
type reader struct {
	path    string
	w       *writer
	file    *os.File
	buf     *bufio.Reader
	begun   []byte    // of a line whose end is not written yet
	leaving time.Time // since when the file is to be left
}

func (r *reader) use(f *os.File) {
	r.file, r.buf, r.begun, r.leaving = f, bufio.NewReader(f), nil, time.Time{}
}

// drain writes what is there, but for a line whose end is missing. At most lines of them.
func (r *reader) drain(ctx context.Context, lines int64) error {
	for ; lines > 0; lines-- {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		more, err := r.buf.ReadBytes('\n')
		r.begun = append(r.begun, more...)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.flush(); err != nil {
			return err
		}
	}
	return nil
}

// flush writes the line as far as it is there.
func (r *reader) flush() error {
	l := r.begun
	r.begun = nil
	if len(l) == 0 {
		return nil
	}
	return r.w.write(l)
}

// tail is where the last n lines of f begin.
func tail(f io.ReadSeeker, n int64) (int64, error) {
	const block = 4096
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	buf := make([]byte, block)
	for end > 0 {
		start := max(end-block, 0)
		if _, err := f.Seek(start, io.SeekStart); err != nil {
			return 0, err
		}
		part := buf[:end-start]
		if _, err := io.ReadFull(f, part); err != nil {
			return 0, err
		}
		for i := bytes.LastIndexByte(part, '\n'); i >= 0; i = bytes.LastIndexByte(part[:i], '\n') {
			if n--; n < 0 {
				return start + int64(i) + 1, nil
			}
		}
		end = start
	}
	return 0, nil
}
