package journal

import (
	"iter"
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Kind says what an episode tells.
type Kind string

// The kinds of episodes.
const (
	Start   Kind = "pod.start"         // from first sight until ready, succeeded or failed
	Adopt   Kind = "pod.adopt"         // a pod that was already up when the agent began
	Restart Kind = "container.restart" // Of: the container that was first
	Finish  Kind = "pod.finish"        // a completed or rejected pod is taken down
	Delete  Kind = "pod.delete"        // a pod that nobody wants any more is taken down
	Quiet   Kind = "quiet"             // nothing in particular: the time between the others
)

// Pod is whose episode it is.
type Pod struct {
	UID, Namespace, Name string
	Source               string
	Incarnation          int64 // tells apart lives of one UID
}

// Episode is a stretch of a pod's history. It is a copy that the caller may keep.
type Episode struct {
	Key     pod.Key
	Pod     Pod
	Kind    Kind
	Of      string
	Began   time.Time
	Ended   time.Time // zero: still going on
	Outcome string    // of an ended episode: ready, succeeded, failed, done, overtaken …
	Moves   []Move    // oldest first; the first of each stage may be the entry it had when the episode began
	Calls   []Call    // in the order they ended
	Events  []Event
	Dropped int // records that did not fit
}

// Entries gives the moves in the form that the explain package reads; a stage
// that is forgotten ends with an Entry that has only Since.
func (e *Episode) Entries() iter.Seq2[dag.ID, dag.Entry] {
	return func(yield func(dag.ID, dag.Entry) bool) {
		for _, m := range e.Moves {
			entry := m.Entry
			if m.Gone {
				entry = dag.Entry{Since: m.At}
			}
			if !yield(m.ID, entry) {
				return
			}
		}
	}
}

// Move is a stage's new entry.
type Move struct {
	At    time.Time
	ID    dag.ID
	Entry dag.Entry // without Owns; Err has the text and the reason of the original
	Gone  bool      // the stage is forgotten: of Entry only Since counts
}

// Call is a call to another program that a stage made.
type Call struct {
	Stage    dag.ID
	Attempt  int
	Method   string // RunPodSandbox
	From, To time.Time
	Err      string
	Span     uint64 // the span ID that the called program was given; 0: none
}

// Event is something learnt from outside.
type Event struct {
	At     time.Time
	Source string
	Change string // what was learnt, in a few words
	Cause  uint64
}

// episode is an Episode as it is kept.
type episode struct {
	pod     Pod
	kind    Kind
	of      string
	began   time.Time
	ended   time.Time
	outcome string
	tape    tape
	dropped int
}

func (e *episode) unpack(k pod.Key) Episode {
	out := Episode{
		Key: k, Pod: e.pod, Kind: e.kind, Of: e.of, Began: e.began, Ended: e.ended, Outcome: e.outcome, Dropped: e.dropped,
	}
	for _, p := range e.tape.records {
		switch p.kind {
		case called:
			out.Calls = append(out.Calls, e.tape.uncall(p))
		case came:
			out.Events = append(out.Events, e.tape.unevent(p))
		case moved, gone:
			out.Moves = append(out.Moves, e.tape.unmove(p))
		}
	}
	return out
}
