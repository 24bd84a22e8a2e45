package podstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"

	"github.com/google/renameio/v2"

	"github.com/flowlet/flowlet/internal/pod"
)

// Records keeps one state file per pod below <root>/flowlet/pods. Its methods
// may be called concurrently, but not for one pod at a time; they block for
// the file system.
type Records struct {
	dir string

	mu      sync.Mutex
	foreign map[pod.Key]map[string]json.RawMessage // fields that this build does not know
	failed  map[pod.Key]error                      // last write, where it failed
}

// OpenRecords returns the records below root; the directory is made when the
// first one is written.
func OpenRecords(root string) *Records {
	return &Records{
		dir:     filepath.Join(root, "flowlet", "pods"),
		foreign: make(map[pod.Key]map[string]json.RawMessage),
		failed:  make(map[pod.Key]error),
	}
}

const recordSuffix = ".json"

func (r *Records) path(k pod.Key) string { return filepath.Join(r.dir, string(k)+recordSuffix) }

// Load reads every state file. A file that cannot be read is named in the
// error and stays as it is; the others are returned all the same. What a
// killed agent was just writing is removed, so no other agent may be running.
func (r *Records) Load() ([]pod.Record, error) {
	files, err := os.ReadDir(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading state files: %w", err)
	}
	var records []pod.Record
	var bad []error
	for _, f := range files {
		if halfWritten(f) {
			bad = append(bad, os.Remove(filepath.Join(r.dir, f.Name())))
			continue
		}
		uid, ok := strings.CutSuffix(f.Name(), recordSuffix)
		if !ok || f.IsDir() {
			continue
		}
		rec, err := r.read(pod.Key(uid))
		if err != nil {
			bad = append(bad, err)
			continue
		}
		records = append(records, rec)
	}
	return records, errors.Join(bad...)
}

// halfWritten reports whether a file is one that renameio, which names it so,
// has not yet put in the place of a state file.
func halfWritten(f fs.DirEntry) bool {
	_, number, ok := strings.Cut(f.Name(), recordSuffix)
	return ok && f.Type().IsRegular() && strings.HasPrefix(f.Name(), ".") && number != "" && strings.Trim(number, "0123456789") == ""
}

func (r *Records) read(k pod.Key) (pod.Record, error) {
	path := r.path(k)
	data, err := os.ReadFile(path) //nolint:gosec // below our own directory
	if err != nil {
		return pod.Record{}, fmt.Errorf("reading state file: %w", err)
	}
	var rec pod.Record
	var all map[string]json.RawMessage
	err = json.Unmarshal(data, &rec)
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return pod.Record{}, fmt.Errorf("state file %s is damaged, its pod goes on from what the runtime shows: %w", path, err)
	}
	if pod.KeyOf(rec.UID) != k {
		return pod.Record{}, fmt.Errorf("state file %s is of another pod, UID %q", path, rec.UID)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[pod.Record]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		delete(all, name)
	}
	if len(all) > 0 {
		r.mu.Lock()
		r.foreign[k] = all
		r.mu.Unlock()
	}
	return rec, nil
}

// Save writes a pod's state file in one step: after a crash the old or the
// new one is there. Fields of other builds are kept.
func (r *Records) Save(_ context.Context, rec pod.Record) error {
	k := pod.KeyOf(rec.UID)
	err := r.save(k, rec)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.failed, k)
		return nil
	}
	r.failed[k] = err
	return fmt.Errorf("writing state file of pod %s/%s: %w", rec.Namespace, rec.Name, err)
}

func (r *Records) save(k pod.Key, rec pod.Record) error {
	data, err := r.encode(k, rec)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.dir, 0o750); err != nil {
		return err
	}
	// In its own directory: renameio would look for a better one with files of its own.
	return renameio.WriteFile(r.path(k), data, 0o600, renameio.WithTempDir(r.dir))
}

func (r *Records) encode(k pod.Key, rec pod.Record) ([]byte, error) {
	data, err := json.Marshal(rec)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	foreign := r.foreign[k]
	r.mu.Unlock()
	if len(foreign) == 0 {
		return data, nil
	}
	all := maps.Clone(foreign)
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// Delete removes a pod's state file; one that is not there is fine.
func (r *Records) Delete(_ context.Context, k pod.Key) error {
	r.mu.Lock()
	delete(r.foreign, k)
	delete(r.failed, k)
	r.mu.Unlock()
	if err := os.Remove(r.path(k)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing state file: %w", err)
	}
	return nil
}

// Health returns an error that names a pod whose state file could not be
// written last, or nil.
func (r *Records) Health() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, err := range r.failed {
		return fmt.Errorf("cannot persist state of %d pods, among them %s: %w", len(r.failed), k, err)
	}
	return nil
}
