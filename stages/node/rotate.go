package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Endings of the files beside a log, as of kubelet v1.37.2: LOG.STAMP is a part
// that was rotated, LOG.STAMP.gz the same compressed, and LOG.STAMP.tmp what
// becomes of it while it is compressed.
const (
	stampForm = "20060102-150405"
	endGzip   = ".gz"
	endTemp   = ".tmp"
)

// rotator rotates log files. A crash between any two operations loses no line,
// and the next rotation goes on from what it finds.
type rotator struct {
	limits  LogLimits
	runtime LogRuntime
	disk    files
}

// rotate renames a log that is full and has the runtime begin a new one. Parts
// that were rotated before are compressed, but for the newest, and dropped when
// they are too many. A log that is missing is only begun anew.
func (r *rotator) rotate(ctx context.Context, log Log) error {
	info, err := os.Stat(log.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r.reopen(ctx, log)
	case err != nil:
		return fmt.Errorf("log of %s: %w", log.Of, err)
	case info.Size() < r.limits.MaxSize:
		return nil
	}
	// What cannot be removed or compressed takes more room, but the log has to go on.
	parts, err := r.tidy(log.Path)
	if err != nil {
		err = fmt.Errorf("tidying up the rotated logs of %s: %w", log.Of, err)
	}
	return errors.Join(err, r.compress(ctx, log, parts), r.begin(ctx, log, parts))
}

// part is a rotated part of a log.
type part struct {
	stamp   string
	path    string
	gzipped bool
}

var partName = regexp.MustCompile(`^\d{8}-\d{6}(\.gz|\.tmp)?$`)

// tidy removes what an interrupted rotation left and the parts that are too
// many. It returns the others, oldest first.
func (r *rotator) tidy(path string) ([]part, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	prefix := filepath.Base(path) + "."
	parts := map[string]part{}
	var leftovers []string
	for _, e := range entries { // by name: a part comes before its compressed form
		rest, ok := strings.CutPrefix(e.Name(), prefix)
		if !ok || !partName.MatchString(rest) {
			continue
		}
		p := part{path: filepath.Join(filepath.Dir(path), e.Name()), gzipped: strings.HasSuffix(rest, endGzip)}
		p.stamp = strings.TrimSuffix(strings.TrimSuffix(rest, endGzip), endTemp)
		if strings.HasSuffix(rest, endTemp) {
			leftovers = append(leftovers, p.path)
			continue
		}
		if old, ok := parts[p.stamp]; ok {
			leftovers = append(leftovers, old.path)
		}
		parts[p.stamp] = p
	}
	sorted := make([]part, 0, len(parts))
	for _, p := range parts {
		sorted = append(sorted, p)
	}
	slices.SortFunc(sorted, func(a, b part) int { return strings.Compare(a.stamp, b.stamp) })
	// The log and the part that it becomes have a place too.
	for len(sorted) > max(r.limits.MaxFiles-2, 0) {
		leftovers, sorted = append(leftovers, sorted[0].path), sorted[1:]
	}
	var errs []error
	for _, f := range leftovers {
		if err := r.disk.Remove(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return sorted, errors.Join(errs...)
}

// compress compresses the parts that are not yet.
func (r *rotator) compress(ctx context.Context, log Log, parts []part) error {
	var errs []error
	for _, p := range parts {
		if p.gzipped {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := r.gzip(p.path); err != nil {
			errs = append(errs, fmt.Errorf("compressing a rotated log of %s: %w", log.Of, err))
		}
	}
	return errors.Join(errs...)
}

// errWritten says that a rotated part still grows.
var errWritten = errors.New("the runtime still writes to it")

// gzip puts a compressed file in the place of a part. The part goes only when
// all of it is safely in the other.
func (r *rotator) gzip(path string) error {
	size, err := r.disk.Gzip(path, path+endTemp)
	if err != nil {
		return errors.Join(err, r.drop(path+endTemp))
	}
	switch info, err := os.Stat(path); {
	case err != nil:
		return errors.Join(err, r.drop(path+endTemp))
	case info.Size() != size:
		return errors.Join(fmt.Errorf("%s: %w", path, errWritten), r.drop(path+endTemp))
	}
	if err := r.disk.Rename(path+endTemp, path+endGzip); err != nil {
		return err
	}
	return r.drop(path)
}

func (r *rotator) drop(path string) error {
	if err := r.disk.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// begin renames the log and has the runtime begin a new one. When the runtime
// does not, the log gets its name back, unless there is a new file: then the
// runtime did, and its answer was lost.
func (r *rotator) begin(ctx context.Context, log Log, parts []part) error {
	to := log.Path + "." + stamp(time.Now(), parts)
	if err := r.disk.Rename(log.Path, to); err != nil {
		return fmt.Errorf("rotating the log of %s: %w", log.Of, err)
	}
	err := r.reopen(ctx, log)
	if err == nil {
		return nil
	}
	switch undo := r.disk.Rename(to, log.Path); {
	case errors.Is(undo, fs.ErrExist):
		return nil
	case undo != nil:
		return errors.Join(err, fmt.Errorf("giving the log of %s its name back: %w", log.Of, undo))
	}
	return err
}

func (r *rotator) reopen(ctx context.Context, log Log) error {
	if err := r.runtime.ReopenContainerLog(ctx, log.ID); err != nil {
		return fmt.Errorf("beginning a new log file of %s: %w", log.Of, err)
	}
	return nil
}

// stamp is the time in the name of a new part, in local time as the kubelet's.
// It comes after those of all parts, also when the clock was set back: their
// order is all that tells which is the oldest.
func stamp(now time.Time, parts []part) string {
	s := now.Format(stampForm)
	if len(parts) == 0 || s > parts[len(parts)-1].stamp {
		return s
	}
	last, err := time.Parse(stampForm, parts[len(parts)-1].stamp)
	if err != nil {
		return s
	}
	return last.Add(time.Second).Format(stampForm)
}
