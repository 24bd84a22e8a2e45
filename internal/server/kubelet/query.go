package kubelet

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/flowlet/flowlet/internal/server/kubelet/crilog"
)

// logQuery are the parameters of /containerLogs: those of v1.PodLogOptions,
// and "tail", an old name of tailLines that knows "all".
type logQuery struct {
	read     crilog.Options
	follow   bool
	previous bool
}

// parseLogQuery decodes a query. What cannot be decoded is an undecodable
// error, what makes no sense another one.
func parseLogQuery(q url.Values, now time.Time) (logQuery, error) {
	if tail := q.Get("tail"); tail != "" && tail != "all" {
		q.Set("tailLines", tail)
	}
	d := decoder{q: q}
	out := logQuery{previous: d.boolean("previous"), follow: d.boolean("follow")}
	out.read.Stream, out.read.Timestamps = d.oneOf("stream", "All", "Stdout", "Stderr"), d.boolean("timestamps")
	out.read.Tail = d.integer("tailLines", 0)
	out.read.LimitBytes = d.integer("limitBytes", 1)
	seconds := d.integer("sinceSeconds", 1)
	out.read.Since = d.time("sinceTime")
	switch {
	case seconds != nil && !out.read.Since.IsZero():
		d.invalid = append(d.invalid, errors.New("at most one of sinceTime and sinceSeconds may be specified"))
	case seconds != nil && *seconds < now.Unix(): // more is all there is, and no duration any more
		out.read.Since = now.Add(-time.Duration(*seconds) * time.Second)
	}
	if out.read.Tail != nil && out.read.Stream != "All" {
		d.invalid = append(d.invalid, errors.New("tailLines and a specific stream are mutually exclusive"))
	}
	if d.undecodable != nil {
		return out, undecodable{errors.Join(d.undecodable...)}
	}
	return out, errors.Join(d.invalid...)
}

// undecodable is an error about the form of a value.
type undecodable struct{ error }

// decoder collects what is wrong with a query.
type decoder struct {
	q           url.Values
	undecodable []error
	invalid     []error
}

// boolean is true also for a parameter without a value.
func (d *decoder) boolean(name string) bool {
	if !d.q.Has(name) {
		return false
	}
	v := d.q.Get(name)
	return v != "false" && v != "0"
}

func (d *decoder) integer(name string, least int64) *int64 {
	v := d.q.Get(name)
	if v == "" {
		return nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		d.undecodable = append(d.undecodable, fmt.Errorf("%s: %q is not a number", name, v))
		return nil
	}
	if n < least {
		d.invalid = append(d.invalid, fmt.Errorf("%s: %d, must be at least %d", name, n, least))
	}
	return &n
}

func (d *decoder) time(name string) time.Time {
	v := d.q.Get(name)
	if v == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, v)
	if err != nil {
		d.undecodable = append(d.undecodable, fmt.Errorf("%s: %q is not a time as in RFC 3339 (2006-01-02T15:04:05Z)", name, v))
	}
	return t
}

func (d *decoder) oneOf(name string, first string, more ...string) string {
	v := d.q.Get(name)
	if v == "" || v == first {
		return first
	}
	for _, m := range more {
		if v == m {
			return v
		}
	}
	d.invalid = append(d.invalid, fmt.Errorf("%s: %q, must be one of %q", name, v, append([]string{first}, more...)))
	return first
}
