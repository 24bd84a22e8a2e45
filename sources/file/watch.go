package file

import (
	"path/filepath"

	"github.com/fsnotify/fsnotify"
	"github.com/sourcegraph/conc"
)

// Watcher tells when a directory may have changed.
type Watcher interface {
	// Watch begins to watch. changed gets a value, and holds at most one,
	// when something in the directory changed after Watch returned; it is
	// closed when the watch is lost (the directory was moved or removed).
	// stop ends the watch and returns when all of it has ended; it must be
	// called once.
	Watch(directory string) (changed <-chan struct{}, stop func(), err error)
}

// inotify is the kernel's watcher.
type inotify struct{}

var _ Watcher = inotify{}

func (inotify) Watch(directory string) (<-chan struct{}, func(), error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, nil, err
	}
	if err := w.Add(directory); err != nil {
		_ = w.Close()
		return nil, nil, err
	}
	changed := make(chan struct{}, 1) // one is enough: it says "look again"
	var group conc.WaitGroup
	group.Go(func() { forward(w, filepath.Clean(directory), changed) })
	return changed, func() {
		_ = w.Close()
		group.Wait()
	}, nil
}

// forward ends, and closes changed, when w is closed or the directory is gone.
func forward(w *fsnotify.Watcher, directory string, changed chan<- struct{}) {
	defer close(changed)
	for {
		select {
		case e, ok := <-w.Events:
			if !ok || (filepath.Clean(e.Name) == directory && (e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename))) {
				return
			}
		case _, ok := <-w.Errors: // an overflow: events were lost, so look
			if !ok {
				return
			}
		}
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}
