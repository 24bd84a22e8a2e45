package explain

import (
	"cmp"
	"slices"
	"time"

	"github.com/flowlet/flowlet/dag"
)

// Segment is a piece of a critical path: what the whole waited for then.
type Segment struct {
	Stage string    `json:"stage,omitempty"` // empty: no stage was busy
	State string    `json:"state"`           // of the span, or "idle"
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Note  string    `json:"note,omitempty"` // the task, the reason or the error
}

// Duration returns the length of the segment.
func (s Segment) Duration() time.Duration { return s.To.Sub(s.From) }

// stateIdle is the state of a segment in which no stage was busy: from the end
// of a run to the step that looked at it, or while an application boots.
const stateIdle = "idle"

// CriticalPath returns what decided the length of the window: it walks back
// from its end, from each wait to the one among those waited for that ended
// last. The segments are in order of time, none is negative, and they cover
// the window without gap or overlap, so that their sum is its length.
func CriticalPath(spans []Span, w Window) []Segment {
	p := path{byStage: map[string][]Span{}, window: w}
	for _, s := range spans {
		if s.Duration() > 0 {
			p.byStage[s.ID()] = append(p.byStage[s.ID()], s)
		}
	}
	for id, list := range p.byStage {
		slices.SortStableFunc(list, func(a, b Span) int { return a.To.Compare(b.To) })
		p.stages = append(p.stages, id)
	}
	slices.Sort(p.stages)
	p.walk()
	slices.Reverse(p.segments)
	return p.segments
}

// path is a walk back in time.
type path struct {
	byStage  map[string][]Span // in order of time
	stages   []string
	window   Window
	segments []Segment // newest first
}

func (p *path) walk() {
	at, stage := p.window.To, ""
	visited := map[string]bool{} // at this moment; the graph has no cycles, but spans may come from anywhere
	for at.After(p.window.From) {
		seg, next := p.before(stage, at, visited)
		if seg.From.Before(at) {
			p.add(seg)
			clear(visited)
			visited[stage] = true
		} else if visited[next] {
			return
		}
		at, stage = seg.From, next
		visited[next] = true
	}
}

// before returns what was waited for until at, and the stage to go on with
// from its beginning. It may be empty: then only the stage changes.
func (p *path) before(stage string, at time.Time, visited map[string]bool) (Segment, string) {
	s, ok := p.covering(stage, at)
	if !ok {
		from, next := p.lastRun(at)
		return Segment{State: stateIdle, From: from, To: at}, next
	}
	seg := Segment{Stage: s.ID(), State: s.State, From: later(s.From, p.window.From), To: at, Note: note(s)}
	if s.is(dag.Waiting) {
		if next, end := p.blocker(s, at, visited); next != "" {
			seg.From = later(end, seg.From)
			return seg, next
		}
	}
	return seg, stage
}

// add prepends a segment, or lengthens the one before if it is the same.
func (p *path) add(s Segment) {
	if n := len(p.segments); n > 0 {
		last := &p.segments[n-1]
		if last.Stage == s.Stage && last.State == s.State && last.Note == s.Note && s.State != dag.Running.String() {
			last.From = s.From
			return
		}
	}
	p.segments = append(p.segments, s)
}

// covering returns the stage's span that goes on just before at.
func (p *path) covering(stage string, at time.Time) (Span, bool) {
	for _, s := range slices.Backward(p.byStage[stage]) {
		if s.From.Before(at) && !s.To.Before(at) {
			return s, true
		}
	}
	return Span{}, false
}

// lastRun returns the stage that was busy until at or, failing that, the last
// one before, and when it ended; without one, the beginning of the window.
func (p *path) lastRun(at time.Time) (time.Time, string) {
	end, stage := p.window.From, ""
	rank := -1
	for _, id := range p.stages {
		for _, s := range slices.Backward(p.byStage[id]) {
			if s.is(dag.Waiting) || !s.From.Before(at) {
				continue
			}
			to := s.To
			if to.After(at) {
				to = at
			}
			if r := rankOf(s); cmp.Or(to.Compare(end), cmp.Compare(r, rank)) > 0 {
				end, stage, rank = to, id, r
			}
			break
		}
	}
	return end, stage
}

// rankOf prefers, among stages that end together, what is nearer to the
// purpose of a pod.
func rankOf(s Span) int {
	switch s.Kind {
	case "container", "api.delete", "sandbox.remove":
		return 2
	case "status", "status.publish", "observe", "probe", "record":
		return 0
	default:
		return 1
	}
}

// blocker returns which of the stages that s waits for held it up until last,
// and until when, at most at. Of several it is the one that took longest.
func (p *path) blocker(s Span, at time.Time, visited map[string]bool) (best string, end time.Time) {
	var began time.Time
	for _, id := range s.On {
		for _, b := range slices.Backward(p.byStage[id]) {
			if !b.From.Before(at) {
				continue
			}
			to := b.To
			if to.After(at) {
				to = at
			}
			newer := cmp.Or(to.Compare(end), began.Compare(b.From))
			if to.After(s.From) && !visited[id] && (best == "" || newer > 0) {
				best, end, began = id, to, b.From
			}
			break
		}
	}
	return best, end
}

func note(s Span) string {
	switch {
	case s.Error != "":
		return s.Error
	case s.Why != "":
		return s.Why
	case s.is(dag.Waiting):
		return "for " + few(s.On, 3)
	case s.is(dag.Queued) && s.Class != "":
		return "for a slot of class " + s.Class
	default:
		return s.Do
	}
}
