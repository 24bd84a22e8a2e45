package file_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowlet/flowlet/internal/manifest"
	"github.com/flowlet/flowlet/sources/file"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const dir = "/manifests"

// world is a scripted directory, and the source that reads it in virtual time.
type world struct {
	t *testing.T

	mu       sync.Mutex
	files    map[string]string // by name; "dir" is a directory
	listErr  error
	readErr  map[string]error
	changed  chan struct{}
	watches  int
	watchErr error
	updates  []manifest.Update
	logs     []string

	source *file.Source
	stop   context.CancelCauseFunc
	done   chan error
}

func newWorld(t *testing.T) *world {
	return &world{t: t, files: map[string]string{}, readErr: map[string]error{}}
}

func (w *world) start(change ...func(*file.Config)) {
	cfg := file.Config{Path: dir, NodeName: "n1", Disk: w, Watcher: w, Log: slog.New(w)}
	for _, c := range change {
		c(&cfg)
	}
	w.source = file.New(cfg)
	w.run()
}

func (w *world) run() {
	ctx, stop := context.WithCancelCause(context.Background())
	w.stop, w.done = stop, make(chan error, 1)
	go func() {
		w.done <- w.source.Run(ctx, func(u manifest.Update) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.updates = append(w.updates, u)
		})
	}()
	synctest.Wait()
}

func (w *world) end() {
	w.stop(errors.New("test is over"))
	require.EqualError(w.t, <-w.done, "test is over")
	require.Zero(w.t, w.watches, "a watch was left open")
}

// put writes a file without notice; empty text removes it.
func (w *world) put(name, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files[name] = text
	if text == "" {
		delete(w.files, name)
	}
}

// fail makes listing the directory, and watching it, fail; nil heals it.
func (w *world) fail(list, watch error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listErr, w.watchErr = list, watch
}

// failRead makes reading one file fail; nil heals it.
func (w *world) failRead(name string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readErr[name] = err
}

// edit writes a file and lets the watcher tell, then waits for the look.
func (w *world) edit(name, text string) {
	w.put(name, text)
	w.notify()
	w.pass(time.Second)
}

func (w *world) notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *world) pass(d time.Duration) {
	time.Sleep(d) // virtual
	synctest.Wait()
}

// told returns what was emitted since the last call, one short line each.
func (w *world) told() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := []string{}
	for _, u := range w.updates {
		line := u.Kind.String()
		if u.Kind != manifest.Synced {
			line += " " + u.FullName + " " + u.Pod.Spec.Containers[0].Image
		}
		out = append(out, line)
	}
	w.updates = nil
	return out
}

func (w *world) logged(part string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, l := range w.logs {
		n += strings.Count(l, part)
	}
	return n
}

func (w *world) status(name string) file.FileStatus {
	for _, f := range w.source.Files() {
		if f.Path == filepath.Join(dir, name) {
			return f
		}
	}
	w.t.Fatalf("no status of %s", name)
	return file.FileStatus{}
}

// pod is a manifest of one container.
func pod(name, image string, more ...string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\n%sspec:\n  containers:\n  - {name: c, image: %q}\n",
		name, strings.Join(more, ""), image)
}

func uid(u string) string { return "  uid: " + u + "\n" }

// The world is the disk …

func (w *world) List(path string) ([]file.Entry, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listErr != nil {
		return nil, w.listErr
	}
	if path != dir {
		if _, ok := w.files[filepath.Base(path)]; ok {
			return nil, syscall.ENOTDIR
		}
		return nil, fs.ErrNotExist
	}
	var out []file.Entry
	for name, text := range w.files {
		out = append(out, file.Entry{Name: name, Dir: text == "dir"})
	}
	slices.SortFunc(out, func(a, b file.Entry) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (w *world) Read(path string, _ int64) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.readErr[filepath.Base(path)]; err != nil {
		return nil, err
	}
	text, ok := w.files[filepath.Base(path)]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

// … the watcher …

func (w *world) Watch(string) (<-chan struct{}, func(), error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watchErr != nil {
		return nil, nil, w.watchErr
	}
	w.changed = make(chan struct{}, 1)
	w.watches++
	return w.changed, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.watches--
	}, nil
}

// … and the log.

func (w *world) Enabled(context.Context, slog.Level) bool { return true }
func (w *world) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *world) WithGroup(string) slog.Handler            { return w }
func (w *world) Handle(_ context.Context, r slog.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	w.logs = append(w.logs, line)
	return nil
}
