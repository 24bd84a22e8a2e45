package file

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"
)

// watch is the watch that Run holds; the zero value is none.
type watch struct {
	changed <-chan struct{}
	stop    func()
}

func (w *watch) end() {
	if w.stop != nil {
		w.stop()
	}
	*w = watch{}
}

// ensureWatch begins to watch if nothing is watched. Without a watch the
// periodic look goes on, and each look tries again.
func (s *Source) ensureWatch(ctx context.Context, w *watch) {
	if w.stop != nil {
		return
	}
	directory := s.cfg.Path
	if _, err := s.cfg.Disk.List(directory); errors.Is(err, syscall.ENOTDIR) {
		directory = filepath.Dir(directory) // where a rename into its place is seen
	}
	changed, stop, err := s.cfg.Watcher.Watch(directory)
	switch {
	case err == nil:
		*w = watch{changed: changed, stop: stop}
		s.watchTrouble = false
	case errors.Is(err, fs.ErrNotExist): // the look says so
	case !s.watchTrouble:
		s.watchTrouble = true
		s.cfg.Log.WarnContext(ctx, "changes of manifests are not notified, only found by the periodic look",
			"path", directory, "period", s.cfg.Period, "error", err)
	}
}

// sleep returns after wait, or soon after something changed, with nil; or when
// ctx ends, with its cause.
func (s *Source) sleep(ctx context.Context, w *watch, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	case _, ok := <-w.changed:
		return s.calm(ctx, w, ok)
	}
}

// calm waits until nothing has changed for a moment.
func (s *Source) calm(ctx context.Context, w *watch, watching bool) error {
	latest := time.NewTimer(patience)
	defer latest.Stop()
	for {
		if !watching {
			w.end()
		}
		moment := time.NewTimer(quiet)
		select {
		case <-ctx.Done():
			moment.Stop()
			return context.Cause(ctx)
		case <-latest.C:
			moment.Stop()
			return nil
		case <-moment.C:
			return nil
		case _, watching = <-w.changed:
			moment.Stop()
		}
	}
}
