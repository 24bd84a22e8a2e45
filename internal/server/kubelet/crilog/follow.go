package crilog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

const (
	recheck = time.Second          // is it running still, and for events that were lost
	closing = 5 * time.Millisecond // has the writer closed the file: nothing tells of that
	// patience with a writer that never closes a file that it has left, or a file system that does not tell.
	patience = 5 * time.Second
)

// follow reads until nothing more is to come. A file is left, or the log over, when that was settled before the
// file's end was read: its writer has closed it, and either there is a next file or nobody runs who could write more.
func (r *reader) follow(ctx context.Context) error {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("following %s: %w", r.path, err)
	}
	defer events.Close()
	if err := events.Add(filepath.Dir(r.path)); err != nil {
		return fmt.Errorf("following %s: %w", r.path, err)
	}
	for {
		running := r.w.Running()
		next, err := r.next()
		if err != nil {
			return fmt.Errorf("following %s: %w", r.path, err)
		}
		leave := r.closed(next.path != "" || !running)
		if err := r.drain(ctx, math.MaxInt64); err != nil {
			return err
		}
		switch {
		case !leave:
			err = r.wait(ctx, events)
		case next.path == "":
			return r.flush()
		default:
			err = r.to(next)
		}
		if err != nil {
			return err
		}
	}
}

// wait returns when something may have changed.
func (r *reader) wait(ctx context.Context, events *fsnotify.Watcher) error {
	after := recheck
	if !r.leaving.IsZero() {
		after = closing
	}
	t := time.NewTimer(after)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-events.Events:
	case <-events.Errors: // events were lost
	case <-t.C:
	}
	return nil
}

// part is a file of the log; without a path there is none.
type part struct {
	path string
	info fs.FileInfo
}

// to goes on with another file. One that was renamed since is looked for again:
// another may have its name.
func (r *reader) to(next part) error {
	f, err := os.Open(next.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info, err := f.Stat(); err != nil || !os.SameFile(info, next.info) {
		return errors.Join(err, f.Close())
	}
	if err := r.flush(); err != nil {
		return errors.Join(err, f.Close())
	}
	_ = r.file.Close() // only read
	r.use(f)
	return nil
}

// rotated is the end of a rotated part's name that is not compressed.
var rotated = regexp.MustCompile(`\.\d{8}-\d{6}$`)

// next is the file that follows the one that is read: of the parts rotated after it the oldest, or the log itself.
func (r *reader) next() (none part, _ error) {
	own, err := r.file.Stat()
	if err != nil {
		return none, err
	}
	now, err := os.Stat(r.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && os.SameFile(own, now) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	names, err := filepath.Glob(r.path + ".*") // sorted, which is by time
	if err != nil {
		return none, err
	}
	after := part{r.path, now}
	younger := after
	for _, name := range slices.Backward(names) {
		info, err := os.Stat(name)
		if err != nil || !rotated.MatchString(name) {
			continue
		}
		if os.SameFile(own, info) {
			return after, nil
		}
		after = part{name, info}
		if !info.ModTime().Before(own.ModTime()) {
			younger = after
		}
	}
	return younger, nil // the own part was compressed or removed
}

// closed reports of a file that is to be left whether nobody has it open for writing any more, or has had time enough
// to close it.
func (r *reader) closed(leave bool) bool {
	switch {
	case !leave:
		r.leaving = time.Time{}
		return false
	case r.leaving.IsZero():
		r.leaving = time.Now()
	}
	// The kernel grants a lease for reading only on what nobody writes to.
	if _, err := unix.FcntlInt(r.file.Fd(), unix.F_SETLEASE, unix.F_RDLCK); err == nil {
		_, err = unix.FcntlInt(r.file.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		return err == nil
	}
	return time.Since(r.leaving) >= patience
}
