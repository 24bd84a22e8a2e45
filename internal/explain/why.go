package explain

import (
	"slices"
	"strings"
	"time"

	"github.com/flowlet/flowlet/dag"
)

// WhySchema names the JSON form of Report.
const WhySchema = "flowlet.dev/why/v1"

// Subject is what Why looks at.
type Subject struct {
	Pod    string          // namespace/name
	Phase  string          // of the pod's life on this node
	Stages []Stage         // of FromGraph
	Queues []Queue         // at least those of the classes that Stages name
	Owners map[string]Work // by object: the stage, of any pod, that changes it
}

// Report tells why a pod is not further.
type Report struct {
	Schema   string    `json:"schema"`
	Pod      string    `json:"pod"`
	Phase    string    `json:"phase,omitempty"`
	At       time.Time `json:"at"`
	Done     int       `json:"done"`     // stages with nothing left to do
	Total    int       `json:"total"`    // stages
	Blocking []Block   `json:"blocking"` // oldest first
}

// Block is a stage that is not done and does not merely wait for other stages
// of its pod.
type Block struct {
	Stage   string    `json:"stage"`
	State   string    `json:"state"`
	Do      string    `json:"do,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	Until   time.Time `json:"until,omitzero"`
	Attempt int       `json:"attempt,omitempty"`
	Error   string    `json:"error,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Hold    string    `json:"hold,omitempty"`   // why it may not start yet
	Object  string    `json:"object,omitempty"` // that it waits for
	Owner   *Work     `json:"owner,omitempty"`  // who has the object
	Left    bool      `json:"left,omitempty"`   // no longer wanted, its end is waited for

	Class    string `json:"class,omitempty"`
	Position int    `json:"position,omitempty"` // in the queue of its class, from 1
	Slots    int    `json:"slots,omitempty"`
	Holders  []Work `json:"holders,omitempty"` // who has the slots, or is lost in a stopped class
	Stopped  bool   `json:"stopped,omitempty"` // the class starts no more because of lost runs

	Blocks []string `json:"blocks,omitempty"` // the stages that wait for this one, directly or not
}

// Why returns the stages that keep a pod from getting further, and what each
// of them waits for.
func Why(now time.Time, s Subject) Report {
	r := Report{Schema: WhySchema, Pod: s.Pod, Phase: s.Phase, At: now, Total: len(s.Stages), Blocking: []Block{}}
	for i := range s.Stages {
		st := &s.Stages[i]
		switch {
		case st.is(dag.Done) || st.State == StateNew && st.Do == "", st.is(dag.Held) && st.OnTime:
			r.Done++
		case st.is(dag.Waiting) && (st.Why == "" || anyBlocks(s.Stages, st.On)):
			// explained by those it waits for
		default:
			r.Blocking = append(r.Blocking, block(s, st))
		}
	}
	slices.SortStableFunc(r.Blocking, func(a, b Block) int { return a.Since.Compare(b.Since) })
	return r
}

// anyBlocks reports whether one of the stages is there and not done: then it
// is a line of the report itself.
func anyBlocks(stages []Stage, on []string) bool {
	return slices.ContainsFunc(stages, func(s Stage) bool { return slices.Contains(on, s.ID) && !s.is(dag.Done) })
}

func block(s Subject, st *Stage) Block {
	b := Block{
		Stage: st.ID, State: st.State, Do: st.Do, Since: st.Since, Until: st.Until, Attempt: st.Attempt,
		Error: st.Error, Reason: st.Reason, Class: st.Class, Left: st.Left, Blocks: waiters(s.Stages, st.ID),
	}
	switch {
	case st.is(dag.Held):
		b.Hold = st.Why
	case st.is(dag.Waiting):
		b.own(s, st.Why)
	case st.is(dag.Queued):
		b.queue(s, st)
	}
	return b
}

// queue tells who is ahead in the class queue, or has the object that is wanted.
func (b *Block) queue(s Subject, st *Stage) {
	if st.Owns != "" {
		b.own(s, st.Owns)
	}
	i := slices.IndexFunc(s.Queues, func(q Queue) bool { return q.Class == st.Class })
	if i < 0 {
		return
	}
	q := s.Queues[i]
	b.Position = 1 + slices.IndexFunc(q.Waiting, func(w Work) bool { return w.Pod == s.Pod && w.Stage == st.ID })
	b.Slots, b.Holders, b.Stopped = q.Slots, q.Running, q.Stopped
	if q.Stopped {
		b.Holders = q.Lost
	}
}

func (b *Block) own(s Subject, object string) {
	w, ok := s.Owners[object]
	if ok {
		b.Owner = &w
	}
	if ok || b.State == dag.Waiting.String() {
		b.Object = object
	}
}

// waiters returns the stages that need id, directly or through others, and
// are not done.
func waiters(stages []Stage, id string) []string {
	blocked := map[string]bool{id: true}
	var out []string
	for _, s := range stages { // in graph order: a stage comes after those it needs
		if s.is(dag.Done) || s.ID == id {
			continue
		}
		if slices.ContainsFunc(s.Need, func(n string) bool { return blocked[n] }) ||
			s.is(dag.Waiting) && slices.ContainsFunc(s.On, func(n string) bool { return blocked[n] }) {
			blocked[s.ID] = true
			out = append(out, s.ID)
		}
	}
	return out
}

// Message says in one line what blocks the pod, oldest first: fit for the
// message of a condition.
func (r Report) Message() string {
	parts := make([]string, 0, len(r.Blocking))
	for _, b := range r.Blocking {
		parts = append(parts, b.Stage+": "+strings.Join(b.Because(r.At), ", "))
	}
	return strings.Join(parts, "; ")
}
