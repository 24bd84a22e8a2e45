package file

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/manifest"
)

const (
	// DefaultPeriod is the kubelet's fileCheckFrequency.
	DefaultPeriod = 20 * time.Second
	// settle is how long something is wrong with a file before it is logged:
	// longer than a writer needs that does not rename into place.
	settle = 2 * time.Second
	// missingRetry is how often a path that is not there is looked for.
	missingRetry = time.Second
	// After a change the files are read when nothing has moved for quiet, and
	// in any case after patience: many edits at once are one look.
	quiet    = 50 * time.Millisecond
	patience = 500 * time.Millisecond
)

// Config is what a source needs. Path and NodeName are required.
type Config struct {
	Path     string // absolute: a directory of manifests, or one manifest; it need not exist yet
	NodeName string
	Period   time.Duration // of the look that needs no notice; default DefaultPeriod

	// Runs says whether a pod of that UID is on the node already; where two
	// files claim one pod at first sight, such a one wins. May be nil.
	Runs func(types.UID) bool

	Log     *slog.Logger // default: silent
	Disk    Disk         // default: the file system
	Watcher Watcher      // default: inotify
}

// Source is a source of static pods. Files may be called concurrently with
// Run, Run only once at a time.
type Source struct {
	cfg     Config
	catalog *catalog
	files   atomic.Pointer[[]FileStatus]

	pathTrouble  trouble // the path cannot be read
	watchTrouble bool    // told that the watcher does not work
}

// New makes a source; Run starts it.
func New(cfg Config) *Source {
	if cfg.Period <= 0 {
		cfg.Period = DefaultPeriod
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Disk == nil {
		cfg.Disk = osDisk{}
	}
	if cfg.Watcher == nil {
		cfg.Watcher = inotify{}
	}
	cfg.Path = filepath.Clean(cfg.Path)
	return &Source{cfg: cfg, catalog: newCatalog(cfg.NodeName, cfg.Runs)}
}

// Name is the kubelet's name for this source.
func (*Source) Name() string { return manifest.SourceFile }

// Files is what the source makes of each file, sorted by path, as of its last
// look. The slice is the caller's; what it points to is shared.
func (s *Source) Files() []FileStatus {
	files := s.files.Load()
	if files == nil {
		return nil
	}
	return append([]FileStatus(nil), *files...)
}

// Run emits all pods, then Synced, then changes, until ctx ends; then it
// returns the cause. A path that is not there is an empty list and is looked
// for again; a path that cannot be read says nothing until it can. Run may be
// called again afterwards, and then emits all pods again. emit must not block
// for long: nothing else is seen meanwhile.
func (s *Source) Run(ctx context.Context, emit func(manifest.Update)) error {
	var watch watch
	defer watch.end()
	synced := false
	for {
		s.ensureWatch(ctx, &watch) // before the look, so that nothing falls between
		wait, ok := s.look(ctx, emit, !synced)
		if ok && !synced {
			synced = true
			emit(manifest.Update{Kind: manifest.Synced, Seen: time.Now()})
		}
		if err := s.sleep(ctx, &watch, wait); err != nil {
			return err
		}
	}
}

// look reads everything once and says when to look again at the latest.
func (s *Source) look(ctx context.Context, emit func(manifest.Update), all bool) (wait time.Duration, ok bool) {
	readings, err := s.read()
	wait = s.cfg.Period
	switch {
	case errors.Is(err, fs.ErrNotExist):
		wait = min(wait, missingRetry)
		s.notePath(ctx, err)
	case err != nil:
		s.notePath(ctx, err)
		return min(wait, missingRetry), false
	default:
		s.pathTrouble = trouble{}
	}
	for _, u := range s.catalog.apply(time.Now(), readings, all) {
		emit(u)
	}
	next := s.catalog.report(ctx, s.cfg.Log, settle)
	files := s.catalog.statuses()
	s.files.Store(&files)
	if !next.IsZero() {
		wait = min(wait, time.Until(next))
	}
	return wait, true
}

func (s *Source) notePath(ctx context.Context, err error) {
	s.pathTrouble.set(err.Error(), time.Now())
	if !s.pathTrouble.told {
		s.pathTrouble.told = true
		s.cfg.Log.WarnContext(ctx, "manifests cannot be read; trying again", "path", s.cfg.Path, "error", err)
	}
}

// read gives the contents of all files that may be manifests, and names the
// others.
func (s *Source) read() ([]reading, error) {
	entries, err := s.cfg.Disk.List(s.cfg.Path)
	if errors.Is(err, syscall.ENOTDIR) {
		one := s.readFile(s.cfg.Path)
		if errors.Is(one.err, fs.ErrNotExist) {
			return nil, one.err
		}
		return []reading{one}, nil
	}
	if err != nil {
		return nil, err
	}
	var out []reading
	for _, e := range entries {
		path := filepath.Join(s.cfg.Path, e.Name)
		r := reading{path: path, ignored: ignoredName(e.Name)}
		switch {
		case isPlumbing(e.Name):
			continue
		case e.Dir:
			r.ignored = ignoredDirectory
		case r.ignored == "":
			r = s.readFile(path)
		}
		if errors.Is(r.err, fs.ErrNotExist) {
			continue // it was there when the directory was listed
		}
		out = append(out, r)
	}
	return out, nil
}

func (s *Source) readFile(path string) reading {
	data, err := s.cfg.Disk.Read(path, manifest.MaxBytes+1)
	if errors.Is(err, syscall.EISDIR) {
		return reading{path: path, ignored: ignoredDirectory}
	}
	return reading{path: path, data: data, err: err}
}
