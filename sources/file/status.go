package file

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// statuses is a snapshot of all files, sorted by path.
func (c *catalog) statuses() []FileStatus {
	out := make([]FileStatus, 0, len(c.records))
	for _, path := range slices.Sorted(maps.Keys(c.records)) {
		out = append(out, c.status(path))
	}
	return out
}

func (c *catalog) status(path string) FileStatus {
	r := c.records[path]
	s := FileStatus{Path: path, Ignored: r.ignored, Err: r.err, Conflict: r.clash}
	if r.err != nil {
		s.ErrSince = r.trouble.since
	}
	v := c.active[path]
	if v == nil {
		v = r.latest
	}
	if v != nil {
		s.UID, s.FullName, s.Revision, s.Since, s.Warnings = v.UID(), v.FullName(), v.Revision, v.seen, v.Warnings
	}
	return s
}

// report logs what is new and has lasted for settle, and says when there may
// be more to log; zero when nothing waits.
func (c *catalog) report(ctx context.Context, log *slog.Logger, settle time.Duration) (next time.Time) {
	now := time.Now()
	var ignored []string
	for _, path := range slices.Sorted(maps.Keys(c.records)) {
		r := c.records[path]
		switch due := r.trouble.since.Add(settle); {
		case r.trouble.text == "" || r.trouble.told:
		case now.Before(due):
			if next.IsZero() || due.Before(next) {
				next = due
			}
		default:
			r.trouble.told = true
			log.WarnContext(ctx, "manifest is not used as it is", "path", path, "error", r.trouble.text, "keeps_pod", c.active[path] != nil)
		}
		if r.told {
			continue
		}
		r.told = true
		if r.ignored != "" {
			ignored = append(ignored, path+": "+r.ignored)
		}
		if r.latest != nil {
			for _, w := range r.latest.Warnings {
				log.WarnContext(ctx, "manifest runs, but something in it is odd", "path", path, "warning", w.String())
			}
		}
	}
	if len(ignored) > 0 {
		log.WarnContext(ctx, "not manifests", "ignored", ignored)
	}
	return next
}
