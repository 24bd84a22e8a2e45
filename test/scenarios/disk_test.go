package scenarios_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/flowlet/flowlet/sources/file"
)

const manifestDir = "/manifests"

// disk is the directory of manifests, with a watcher that tells of every change.
type disk struct {
	mu      sync.Mutex
	files   map[string]string
	reads   int
	watches map[chan struct{}]bool
}

var (
	_ file.Disk    = (*disk)(nil)
	_ file.Watcher = (*disk)(nil)
)

func newDisk() *disk { return &disk{files: map[string]string{}, watches: map[chan struct{}]bool{}} }

func (d *disk) write(name, text string) { d.change(func() { d.files[name] = text }) }

func (d *disk) remove(name string) { d.change(func() { delete(d.files, name) }) }

func (d *disk) change(do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	do()
	for c := range d.watches {
		select {
		case c <- struct{}{}:
		default: // it is told already
		}
	}
}

func (d *disk) List(string) ([]file.Entry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []file.Entry
	for name := range d.files {
		out = append(out, file.Entry{Name: name})
	}
	slices.SortFunc(out, func(a, b file.Entry) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (d *disk) Read(path string, _ int64) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads++
	text, ok := d.files[filepath.Base(path)]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func (d *disk) Watch(string) (<-chan struct{}, func(), error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := make(chan struct{}, 1) // one is enough: it says "look again"
	d.watches[c] = true
	return c, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.watches, c)
	}, nil
}
