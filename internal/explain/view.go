package explain

import (
	"cmp"
	"slices"
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Stage is a node of a graph together with what is remembered of it, in a
// form that travels as JSON.
type Stage struct {
	ID    string   `json:"id"` // kind[of]
	Kind  string   `json:"kind"`
	Of    string   `json:"of,omitempty"`
	Need  []string `json:"need,omitempty"`
	After []string `json:"after,omitempty"`
	Do    string   `json:"do,omitempty"` // the task; empty: nothing to do
	Owns  string   `json:"owns,omitempty"`
	Class string   `json:"class,omitempty"`
	// Left says that the newest graph lacks the stage: its run is only waited for.
	Left bool `json:"left,omitempty"`
	// OnTime says of a held stage that it is only not due yet.
	OnTime bool `json:"onTime,omitempty"`

	State   string    `json:"state"`
	Since   time.Time `json:"since,omitzero"`
	Until   time.Time `json:"until,omitzero"`
	Attempt int       `json:"attempt,omitempty"`
	Error   string    `json:"error,omitempty"`
	Reason  string    `json:"reason,omitempty"` // the error's reason word
	On      []string  `json:"on,omitempty"`     // stages that it waits for
	Why     string    `json:"why,omitempty"`    // of a hold; or the object that it waits for
}

// StateNew is the state of a stage that nothing is remembered of.
const StateNew = "new"

// FromGraph returns the stages of a graph, in its order, with what the memo
// says about them. Stages that only the memo has come last, by ID.
func FromGraph[F any](g *dag.Graph[F], m dag.Memo) []Stage {
	stages := make([]Stage, 0, len(g.Nodes()))
	for _, n := range g.Nodes() {
		s := Stage{ID: n.ID.String(), Kind: n.ID.Kind, Of: n.ID.Of, Need: names(n.Need), After: names(n.After), State: StateNew}
		if e, ok := m[n.ID]; ok {
			s.remember(e)
		}
		s.Do, s.Owns, s.Class = n.Key.Do, n.Owns, n.Class
		stages = append(stages, s)
	}
	known := len(stages)
	for id, e := range m {
		if _, ok := g.Node(id); ok {
			continue
		}
		s := Stage{ID: id.String(), Kind: id.Kind, Of: id.Of, Do: e.Key.Do, Left: true}
		s.remember(e)
		stages = append(stages, s)
	}
	slices.SortFunc(stages[known:], func(a, b Stage) int { return cmp.Compare(a.ID, b.ID) })
	return stages
}

func (s *Stage) remember(e dag.Entry) {
	s.State, s.Since, s.Until, s.Attempt = e.State.String(), e.Since, e.Until, e.Attempt
	s.Owns, s.Class, s.Why, s.On, s.OnTime = e.Owns, e.Class, e.Why, names(e.On), e.OnTime
	if e.Err != nil {
		s.Error, s.Reason = e.Err.Error(), pod.ReasonOf(e.Err)
	}
}

func (s *Stage) is(state dag.State) bool { return s.State == state.String() }

func names(ids []dag.ID) []string {
	if len(ids) == 0 {
		return nil
	}
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.String()
	}
	return out
}

// Work is a stage of some pod, as others see it.
type Work struct {
	Pod   string    `json:"pod"` // namespace/name, or the key of a node chore
	Stage string    `json:"stage"`
	Since time.Time `json:"since,omitzero"`
}

// Queue is a class queue: who has its slots and who waits, in order.
type Queue struct {
	Class   string `json:"class"`
	Slots   int    `json:"slots"` // 0: no limit
	Running []Work `json:"running,omitempty"`
	Waiting []Work `json:"waiting,omitempty"`
	Lost    []Work `json:"lost,omitempty"`    // past their deadline and not returned
	Stopped bool   `json:"stopped,omitempty"` // so many are lost that no more are started
}
