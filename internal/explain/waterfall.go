package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flowlet/flowlet/dag"
)

// TraceSchema names the JSON form of Trace.
const TraceSchema = "flowlet.dev/trace/v1"

// Trace is one episode of a pod: its start, the restart of a container, its end.
type Trace struct {
	Schema   string    `json:"schema"`
	Pod      string    `json:"pod"` // namespace/name
	UID      string    `json:"uid,omitempty"`
	TraceID  string    `json:"traceID,omitempty"`
	Kind     string    `json:"kind"` // pod.start, container.restart …
	Of       string    `json:"of,omitempty"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Outcome  string    `json:"outcome,omitempty"` // empty: still going on
	Spans    []Span    `json:"spans"`
	Critical []Segment `json:"critical"`
	Dropped  int       `json:"dropped,omitempty"` // records that did not fit
}

// Describe completes a trace: its schema, and the critical path of its spans.
func Describe(t Trace) Trace {
	t.Schema = TraceSchema
	t.Critical = CriticalPath(t.Spans, Window{t.From, t.To})
	return t
}

// Text renders the trace: where the time went, and who was busy when.
func (t Trace) Text() string {
	var b strings.Builder
	what := t.Kind
	if t.Of != "" {
		what += " of " + t.Of
	}
	outcome := t.Outcome
	if outcome == "" {
		outcome = "still going on"
	}
	total := t.To.Sub(t.From)
	fmt.Fprintf(&b, "%s  %s: %s after %s\n", t.Pod, what, outcome, short(total))
	fmt.Fprintf(&b, "began %s", t.From.UTC().Format("2006-01-02 15:04:05.000Z"))
	if t.TraceID != "" {
		fmt.Fprintf(&b, "  trace %s", t.TraceID)
	}
	b.WriteString("\n\nCritical path\n")
	t.path(&b, total)
	if w := Waterfall(t.Spans, t.Critical, Window{t.From, t.To}); w != "" {
		b.WriteString("\n" + w)
	}
	if t.Dropped > 0 {
		fmt.Fprintf(&b, "\n%d records did not fit and are missing here.\n", t.Dropped)
	}
	return b.String()
}

func (t Trace) path(b *strings.Builder, total time.Duration) {
	for _, s := range t.Critical {
		stage := s.Stage
		if stage == "" {
			stage = "(no stage busy)"
		}
		share := 0
		if total > 0 {
			share = int((s.Duration()*100 + total/2) / total)
		}
		line := fmt.Sprintf("  %6s %3d%%  %s %s %s", short(s.Duration()), share, pad(clip(stage, 25), 25), pad(stateWord(s.State), 8), s.Note)
		b.WriteString(strings.TrimRight(clip(line, width), " ") + "\n")
	}
}

func stateWord(state string) string {
	switch state {
	case dag.Failed.String():
		return "back-off"
	case stateIdle:
		return ""
	default:
		return state
	}
}

// Columns of a waterfall.
const (
	labelColumns = 27
	barColumns   = 42
)

// Lane is a line of a waterfall.
type Lane struct {
	Stage    string
	Spans    []Span
	Ran      time.Duration
	Critical bool // on the critical path
}

// Lanes returns the stages that were busy at some time, in the order in which they first were.
func Lanes(spans []Span, critical []Segment) []Lane {
	var lanes []Lane
	at := map[string]int{}
	for _, s := range spans {
		i, ok := at[s.ID()]
		if !ok {
			i = len(lanes)
			at[s.ID()] = i
			lanes = append(lanes, Lane{Stage: s.ID()})
		}
		lanes[i].Spans = append(lanes[i].Spans, s)
	}
	lanes = slices.DeleteFunc(lanes, func(l Lane) bool { return !slices.ContainsFunc(l.Spans, busy) })
	slices.SortStableFunc(lanes, func(a, b Lane) int { return first(a.Spans).Compare(first(b.Spans)) })
	for i := range lanes {
		l := &lanes[i]
		l.Ran = run(l.Spans)
		l.Critical = slices.ContainsFunc(critical, func(s Segment) bool { return s.Stage == l.Stage })
	}
	return lanes
}

// Waterfall draws, in 80 columns, one line per stage that was busy within the
// window; stages of the critical path have a star.
func Waterfall(spans []Span, critical []Segment, w Window) string {
	total := w.To.Sub(w.From)
	if total <= 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s0%s\n", pad("Stages", labelColumns+2), pad2(short(total), barColumns-1))
	for _, l := range Lanes(spans, critical) {
		star := " "
		if l.Critical {
			star = "*"
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("%s %s%s %6s", star, pad(clip(l.Stage, labelColumns-1), labelColumns), bar(l.Spans, w), short(l.Ran)), " ") + "\n")
	}
	b.WriteString("\n= running  q queued  h held  x back-off  ! lost  . waiting for other stages\n* on the critical path; the number is the time it ran\n")
	return b.String()
}

func busy(s Span) bool { return !s.is(dag.Waiting) }

// first returns when a stage first was busy.
func first(spans []Span) time.Time {
	var t time.Time
	for _, s := range spans {
		if busy(s) && (t.IsZero() || s.From.Before(t)) {
			t = s.From
		}
	}
	return t
}

func run(spans []Span) (d time.Duration) {
	for _, s := range spans {
		if s.is(dag.Running) {
			d += s.Duration()
		}
	}
	return d
}

// marks in order of rank: a later one is drawn over an earlier one.
const marks = " .hqx=!"

func bar(spans []Span, w Window) string {
	cells := slices.Repeat([]byte{' '}, barColumns)
	cell := func(t time.Time) int {
		return int(int64(barColumns) * int64(t.Sub(w.From)) / int64(w.To.Sub(w.From)))
	}
	for _, s := range spans {
		from := min(max(cell(s.From), 0), barColumns-1)
		to := min(max(cell(s.To), from+1), barColumns)
		for i := from; i < to; i++ {
			if m := mark(s); strings.IndexByte(marks, m) > strings.IndexByte(marks, cells[i]) {
				cells[i] = m
			}
		}
	}
	return string(cells)
}

func mark(s Span) byte {
	switch s.State {
	case dag.Running.String():
		return '='
	case dag.Queued.String():
		return 'q'
	case dag.Held.String():
		return 'h'
	case dag.Failed.String():
		return 'x'
	case dag.Lost.String():
		return '!'
	default:
		return '.'
	}
}

// pad2 puts s at the right end of n columns.
func pad2(s string, n int) string { return strings.Repeat(" ", max(0, n-len(s))) + s }
