package ui

import (
	"fmt"
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/explain"
)

// waterfall is a trace with its bars measured.
type waterfall struct {
	explain.Trace
	Heading string
	Result  string
	Total   time.Duration
	Ticks   []tick
	Lanes   []lane
	Path    []segment

	Short     int // segments below half a percent, which are not in Path
	ShortTime time.Duration
}

type tick struct {
	X     int // of scale
	Label string
}

type lane struct {
	explain.Lane
	Bars []bar
}

type bar struct {
	X, Width int // of scale
	Class    string
	Title    string
}

type segment struct {
	explain.Segment
	Class string
	Share int // percent
}

// scale is how many units a waterfall is wide.
const scale = 1000

var headings = map[string]string{
	"pod.start": "Last start", "pod.adopt": "Found up", "container.restart": "Restart", "pod.finish": "Taken down", "pod.delete": "Removal",
}

func fall(t explain.Trace) *waterfall {
	w := &waterfall{Trace: t, Heading: headings[t.Kind], Result: t.Outcome, Total: t.To.Sub(t.From)}
	if w.Heading == "" {
		w.Heading = "Last episode"
	}
	if t.Of != "" {
		w.Heading += " of " + t.Of
	}
	for i := range 5 {
		w.Ticks = append(w.Ticks, tick{X: i * scale / 4, Label: explain.Short(w.Total * time.Duration(i) / 4)})
	}
	for _, l := range explain.Lanes(t.Spans, t.Critical) {
		out := lane{Lane: l}
		for _, s := range l.Spans {
			out.Bars = append(out.Bars, w.bar(s))
		}
		w.Lanes = append(w.Lanes, out)
	}
	for _, s := range t.Critical {
		share := percent(s.Duration(), w.Total)
		if share == 0 {
			w.Short++
			w.ShortTime += s.Duration()
			continue
		}
		w.Path = append(w.Path, segment{Segment: s, Class: s.State, Share: share})
	}
	return w
}

func percent(d, of time.Duration) int {
	if of <= 0 {
		return 0
	}
	return int((d*100 + of/2) / of)
}

func (w *waterfall) bar(s explain.Span) bar {
	total := max(1, w.Total)
	from := min(int(scale*s.From.Sub(w.From)/total), scale-3)
	to := min(int(scale*s.To.Sub(w.From)/total), scale)
	b := bar{X: max(0, from), Width: max(3, to-from), Class: s.State}
	b.Title = fmt.Sprintf("%s: %s for %s", s.ID(), word(s), explain.Short(s.Duration()))
	for _, more := range []string{s.Do, s.Why, s.Error} {
		if more != "" {
			b.Title += "\n" + more
		}
	}
	return b
}

func word(s explain.Span) string {
	if s.State == dag.Failed.String() {
		return "in back-off"
	}
	return s.State
}
