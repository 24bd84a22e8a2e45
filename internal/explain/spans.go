package explain

import (
	"iter"
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Span is a stretch of time that a stage spent in one state.
type Span struct {
	Kind string `json:"kind"`
	Of   string `json:"of,omitempty"`
	// State is waiting, held, queued, running, failed (in back-off) or lost.
	State   string    `json:"state"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Open    bool      `json:"open,omitempty"` // it goes on after To
	Do      string    `json:"do,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	Class   string    `json:"class,omitempty"`
	// Outcome of running: ok, failed, lost, cancelled; empty while open. Ok too
	// where a wait ended with nothing left to do.
	Outcome string   `json:"outcome,omitempty"`
	Error   string   `json:"error,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	On      []string `json:"on,omitempty"`
	Why     string   `json:"why,omitempty"`
}

// The outcomes of a run.
const (
	OK        = "ok"
	Failed    = "failed"
	LostRun   = "lost"
	Cancelled = "cancelled"
)

// ID returns kind[of].
func (s *Span) ID() string { return dag.ID{Kind: s.Kind, Of: s.Of}.String() }

// Duration returns the length of the span.
func (s *Span) Duration() time.Duration { return s.To.Sub(s.From) }

func (s *Span) is(state dag.State) bool { return s.State == state.String() }

// Window is the stretch of time that is looked at.
type Window struct{ From, To time.Time }

// Spans turns the successive entries of some stages, in the order they came,
// into spans within a window: what lies outside is cut off, and what had not
// ended at its end is open. An entry with nothing but Since says that the
// stage was forgotten then. Done is no span, and neither is being held
// with nothing missing, nor a state that took no time, except running. The spans come in the order they ended.
func Spans(entries iter.Seq2[dag.ID, dag.Entry], w Window) []Span {
	var spans []Span
	open := map[dag.ID]dag.Entry{}
	var order []dag.ID
	add := func(id dag.ID, e dag.Entry, next *dag.Entry) {
		if s, ok := spanOf(id, e, next, w); ok {
			spans = append(spans, s)
		}
	}
	for id, e := range entries {
		if before, ok := open[id]; ok {
			add(id, before, &e)
		} else {
			order = append(order, id)
		}
		open[id] = e
	}
	for _, id := range order {
		add(id, open[id], nil)
	}
	return spans
}

// spanOf makes the span of e, which lasted until next.
func spanOf(id dag.ID, e dag.Entry, next *dag.Entry, w Window) (Span, bool) {
	if e.State == dag.Done || e.OnTime || forgotten(e) {
		return Span{}, false
	}
	s := Span{
		Kind: id.Kind, Of: id.Of, State: e.State.String(), From: later(e.Since, w.From), To: w.To,
		Do: e.Key.Do, Attempt: e.Attempt, Class: e.Class, On: names(e.On), Why: e.Why,
	}
	switch {
	case next == nil || next.Since.After(w.To):
		s.Open = true
	default:
		s.To = next.Since
		if e.State == dag.Running || e.State == dag.Lost || next.State == dag.Done {
			s.Outcome, s.Error, s.Reason = outcome(*next)
		}
	}
	if e.State == dag.Failed && e.Err != nil {
		s.Error, s.Reason = e.Err.Error(), pod.ReasonOf(e.Err)
	}
	if s.To.Before(s.From) || s.To.Equal(s.From) && e.State != dag.Running {
		return Span{}, false
	}
	return s, true
}

func forgotten(e dag.Entry) bool {
	return e.State == dag.Waiting && e.Key == dag.Key{} && e.On == nil && e.Why == "" && e.Class == ""
}

// outcome tells from the entry after a run how the run ended.
func outcome(next dag.Entry) (what, err, reason string) {
	if next.Err != nil {
		err, reason = next.Err.Error(), pod.ReasonOf(next.Err)
	}
	switch next.State {
	case dag.Done:
		return OK, "", ""
	case dag.Failed:
		return Failed, err, reason
	case dag.Lost:
		return LostRun, err, reason
	default:
		return Cancelled, "", ""
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
