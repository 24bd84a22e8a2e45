package tracing

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/flowlet/flowlet/internal/journal"
)

// files is a directory with one file per trace, bounded in number. It is used
// by one goroutine.
type files struct {
	dir   string
	keep  int
	names []string // oldest first; nil: not read yet
}

// timeLayout sorts by time as text.
const timeLayout = "20060102T150405.000000000Z"

const suffix = ".otlp.json"

// partial is the suffix of a file that is being written; one that a killed
// agent left is removed by the next.
const partial = ".tmp"

func (f *files) write(e *journal.Episode, resource []attribute.KeyValue, spans []span) error {
	if err := f.open(); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := writeSpans(&b, resource, spans); err != nil {
		return err
	}
	name := fmt.Sprintf("%s_%s_%s_%s%s", e.Ended.UTC().Format(timeLayout), e.Pod.Namespace, e.Pod.Name, e.Kind, suffix)
	path := filepath.Join(f.dir, filepath.Base(name))
	if err := replace(path, b.Bytes()); err != nil {
		return fmt.Errorf("trace file %s: %w", path, err)
	}
	f.names = append(f.names, filepath.Base(name))
	return f.trim()
}

// replace puts a whole file in its place. It is not synced: losing a trace in a
// power cut is no harm.
func replace(path string, data []byte) error {
	if err := os.WriteFile(path+partial, data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+partial, path)
}

// open makes the directory and reads which files an earlier agent left.
func (f *files) open() error {
	if f.names != nil {
		return nil
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return fmt.Errorf("directory for traces: %w", err)
	}
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return fmt.Errorf("directory for traces: %w", err)
	}
	f.names = []string{}
	for _, e := range entries { // by name, which is by time
		switch {
		case strings.HasSuffix(e.Name(), suffix):
			f.names = append(f.names, e.Name())
		case strings.HasSuffix(e.Name(), suffix+partial):
			_ = os.Remove(filepath.Join(f.dir, e.Name())) // it takes some room, no more
		}
	}
	slices.Sort(f.names)
	return nil
}

func (f *files) trim() error {
	for len(f.names) > f.keep {
		if err := os.Remove(filepath.Join(f.dir, f.names[0])); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("removing an old trace file: %w", err)
		}
		f.names = f.names[1:]
	}
	return nil
}
