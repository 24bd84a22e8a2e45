package config

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// Watch calls changed whenever the file may have a new content: after a write
// to it, a rename over it, a switch of a symbolic link beside it, and once at
// the start, so that no change before it is missed. It watches the directory,
// because editors and config maps replace files. changed is called from Watch
// itself, one call at a time, and may be called although nothing changed.
// Watch returns when ctx ends (with its cause) or the watch breaks.
func Watch(ctx context.Context, file string, changed func()) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching %s: %w", file, err)
	}
	defer func() { _ = w.Close() }()
	if err := w.Add(filepath.Dir(file)); err != nil {
		return fmt.Errorf("watching %s: %w", file, err)
	}
	changed()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-w.Errors:
			return fmt.Errorf("watching %s: %w", file, err)
		case e := <-w.Events:
			// Config maps switch the link ..data instead of the file.
			if e.Name == filepath.Clean(file) || filepath.Base(e.Name) == "..data" {
				changed()
			}
		}
	}
}
