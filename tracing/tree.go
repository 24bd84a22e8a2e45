package tracing

import (
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/journal"
)

// span is one span of a trace, complete.
type span struct {
	name     string
	kind     trace.SpanKind
	trace    trace.TraceID
	id       trace.SpanID
	parent   trace.SpanID // zero: the root
	from, to time.Time
	attrs    []attribute.KeyValue
	failed   bool
	message  string // of the failure
	link     trace.SpanContext
}

// noGap is the longest stretch in which no stage is busy that gets no span.
const noGap = time.Millisecond

// treeOf makes the spans of an episode, the root first.
func treeOf(e *journal.Episode) []span {
	w := explain.Window{From: e.Began, To: e.Ended}
	t := &tree{episode: e, subject: subjectOf(e), attempts: map[dag.ID][]*attempt{}}
	t.id, t.base = t.subject.traceID(), podAttributes(e.Pod)
	path := explain.CriticalPath(explain.Spans(e.Entries(), w), w)
	t.root(path)
	t.collect(shown(e))
	for _, id := range t.order {
		for _, a := range t.attempts[id] {
			t.attempt(a)
		}
	}
	for i := range e.Calls {
		t.call(&e.Calls[i])
	}
	t.idle(path)
	return t.spans
}

// shown returns the spans of the episode's stages. Runs that were going on at
// its end are shown whole; all else is cut off there.
func shown(e *journal.Episode) []explain.Span {
	last := e.Ended
	for _, m := range e.Moves {
		if m.At.After(last) {
			last = m.At
		}
	}
	spans := explain.Spans(e.Entries(), explain.Window{From: e.Began, To: last})
	for i := range spans {
		if s := &spans[i]; s.Open && s.To.After(e.Ended) {
			s.To = e.Ended
		}
	}
	return slices.DeleteFunc(spans, func(s explain.Span) bool { return s.To.Before(s.From) })
}

type tree struct {
	episode  *journal.Episode
	subject  subject
	id       trace.TraceID
	base     []attribute.KeyValue
	order    []dag.ID
	attempts map[dag.ID][]*attempt
	spans    []span
}

func (t *tree) add(s span) {
	s.trace, s.attrs = t.id, append(s.attrs, t.base...)
	if s.kind == trace.SpanKindUnspecified {
		s.kind = trace.SpanKindInternal
	}
	t.spans = append(t.spans, s)
}

func (t *tree) root(path []explain.Segment) {
	e := t.episode
	s := span{
		name: string(e.Kind), id: t.subject.root(), from: e.Began, to: e.Ended,
		attrs: []attribute.KeyValue{
			attribute.String("flowlet.outcome", e.Outcome), attribute.String("flowlet.pod.source", e.Pod.Source),
			attribute.Int64("flowlet.pod.incarnation", e.Pod.Incarnation), attribute.StringSlice("flowlet.critical_path", summary(path)),
		},
		failed: e.Outcome == "failed" || e.Outcome == "rejected",
	}
	if e.Of != "" {
		s.attrs = append(s.attrs, attribute.String("container.name", e.Of))
	}
	if e.Dropped > 0 {
		s.attrs = append(s.attrs, attribute.Int("flowlet.dropped", e.Dropped))
	}
	if e.Kind != journal.Start {
		start := subject{pod: e.Pod, kind: journal.Start}
		s.link = trace.NewSpanContext(trace.SpanContextConfig{TraceID: start.traceID(), SpanID: start.root(), TraceFlags: trace.FlagsSampled})
	}
	t.add(s)
}

func summary(path []explain.Segment) []string {
	out := make([]string, len(path))
	for i, s := range path {
		out[i] = strings.TrimSpace(s.Stage+" "+s.State) + " " + s.Duration().Round(10*time.Microsecond).String()
	}
	return out
}

// attempt is what one attempt of a stage is made of.
type attempt struct {
	id    dag.ID
	waits []explain.Span
	run   explain.Span // zero: it never ran
	to    time.Time
}

func (a *attempt) ran() bool { return a.run.State != "" }

func (a *attempt) from() time.Time {
	if len(a.waits) > 0 {
		return a.waits[0].From
	}
	return a.run.From
}

// last returns what the attempt is told by: its run, else its last wait.
func (a *attempt) last() explain.Span {
	if a.ran() {
		return a.run
	}
	return a.waits[len(a.waits)-1]
}

// collect cuts the time of each stage into attempts: from the first hold,
// queue or back-off to the end of the run. Waiting for other stages is their
// spans' matter, unless it falls between.
func (t *tree) collect(spans []explain.Span) {
	open := map[dag.ID]*attempt{}
	for _, s := range spans {
		id := dag.ID{Kind: s.Kind, Of: s.Of}
		a := open[id]
		if s.State == dag.Waiting.String() && a == nil {
			continue
		}
		if s.State == dag.Lost.String() {
			t.lose(id, s)
			continue
		}
		if a == nil {
			a = &attempt{id: id}
			open[id] = a
			if t.attempts[id] == nil {
				t.order = append(t.order, id)
			}
			t.attempts[id] = append(t.attempts[id], a)
		}
		a.to = s.To
		if s.State == dag.Running.String() {
			a.run = s
			delete(open, id)
		} else {
			a.waits = append(a.waits, s)
		}
	}
}

// lose lengthens the run that did not return at its deadline.
func (t *tree) lose(id dag.ID, s explain.Span) {
	if list := t.attempts[id]; len(list) > 0 {
		a := list[len(list)-1]
		a.to = s.To
		if a.run.Error == "" {
			a.run.Error, a.run.Reason = s.Error, s.Reason
		}
	}
}

func (t *tree) attempt(a *attempt) {
	last := a.last()
	since := last.From
	s := span{name: a.id.Kind, id: stageSpan(t.id, a.id, since), parent: t.subject.root(), from: a.from(), to: a.to, attrs: stageAttributes(a)}
	if last.Outcome == explain.Failed || last.Outcome == explain.LostRun {
		s.failed, s.message = true, last.Error
	}
	if !a.ran() && last.Error != "" {
		s.failed, s.message = true, last.Error
	}
	t.add(s)
	for _, w := range a.waits {
		t.add(span{
			name: waitName(w.State), id: stageSpan(s.id2trace(), a.id, w.From), parent: s.id, from: w.From, to: w.To, attrs: waitAttributes(w),
		})
	}
}

// id2trace makes the IDs of waits differ from those of the attempts.
func (s *span) id2trace() (t trace.TraceID) {
	copy(t[:], s.id[:])
	return t
}

// call adds a call below the attempt that made it.
func (t *tree) call(c *journal.Call) {
	parent := t.subject.root()
	for _, a := range t.attempts[c.Stage] {
		if a.ran() && !c.From.Before(a.run.From) {
			parent = stageSpan(t.id, a.id, a.run.From)
		}
	}
	id := c.Span
	if id == 0 {
		id = callSpan()
	}
	t.add(span{
		name: c.Method, kind: trace.SpanKindClient, id: spanID(id), parent: parent, from: c.From, to: c.To,
		attrs:  []attribute.KeyValue{attribute.String("rpc.system", "grpc"), attribute.String("rpc.method", c.Method)},
		failed: c.Err != "", message: c.Err,
	})
}

// idle adds a span where no stage was busy, so that no gap is unexplained.
func (t *tree) idle(path []explain.Segment) {
	for _, s := range path {
		if s.Stage == "" && s.Duration() > noGap {
			id := stageSpan(t.id, dag.ID{Kind: "idle"}, s.From)
			t.add(span{name: "idle", id: id, parent: t.subject.root(), from: s.From, to: s.To})
		}
	}
}
