package dagtest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/flowlet/flowlet/dag"
)

// Move is one call of Observer.Moved.
type Move[K comparable] struct {
	Key      K
	ID       dag.ID
	From, To dag.Entry
}

// Recorder is an observer that records all moves and checks each: it begins
// where the move before it ended, without a gap, and is one that can be.
type Recorder[K comparable] struct {
	// Also, if not nil, is called with each move and the memos of all keys after
	// it, and returns a sentence if it does not like it. It must not block, keep
	// the memos, or call the recorder.
	Also func(m Move[K], memos map[K]dag.Memo) string

	mu     sync.Mutex
	moves  []Move[K]
	memos  map[K]dag.Memo
	breach string
}

var _ dag.Observer[string] = (*Recorder[string])(nil)

// Moved records a move.
func (r *Recorder[K]) Moved(k K, id dag.ID, from, to dag.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := Move[K]{k, id, from, to}
	r.moves = append(r.moves, m)
	if r.memos == nil {
		r.memos = make(map[K]dag.Memo)
	}
	if r.memos[k] == nil {
		r.memos[k] = dag.Memo{}
	}
	breach := follows(r.memos[k][id], from, to)
	if to.Since.IsZero() {
		delete(r.memos[k], id)
	} else {
		r.memos[k][id] = to
	}
	if breach == "" && r.Also != nil {
		breach = r.Also(m, r.memos)
	}
	if r.breach == "" && breach != "" {
		r.breach = fmt.Sprintf("%v %s: %s (from %+v to %+v)", k, id, breach, from, to)
	}
}

// Context returns ctx.
func (r *Recorder[K]) Context(ctx context.Context, _ K, _ dag.ID) context.Context { return ctx }

// follows says what is wrong with a move, given the entry that was last seen.
func follows(last, from, to dag.Entry) string {
	switch {
	case !last.Since.Equal(from.Since) || last.State != from.State || last.Key != from.Key:
		return fmt.Sprintf("a gap: the entry before was %+v", last)
	case to.Since.IsZero():
		if from.InFlight() {
			return "forgotten in flight"
		}
		return ""
	case to.Since.Before(from.Since):
		return "time went back"
	case to.Since.Equal(from.Since) && to.State == from.State && to.Key == from.Key && slices.Equal(to.On, from.On) && to.Until.Equal(from.Until) && to.Why == from.Why && to.Class == from.Class:
		return "nothing moved"
	case !possible(from.State, to.State, from.Since.IsZero()):
		return "no way leads there"
	}
	return ""
}

// possible says whether a stage gets from one state to the other.
func possible(from, to dag.State, isNew bool) bool {
	if isNew {
		return to == dag.Waiting || to == dag.Held || to == dag.Queued || to == dag.Done
	}
	switch from {
	case dag.Running:
		return to == dag.Done || to == dag.Failed || to == dag.Waiting || to == dag.Lost
	case dag.Lost:
		return to == dag.Done || to == dag.Failed || to == dag.Waiting
	case dag.Queued:
		return to != dag.Failed && to != dag.Lost
	case dag.Waiting, dag.Held, dag.Failed, dag.Done:
		return to != dag.Failed && to != dag.Lost && to != dag.Running
	}
	return false
}

// Breach returns the first thing that was wrong, empty if nothing was.
func (r *Recorder[K]) Breach() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.breach
}

// Moves returns all moves so far.
func (r *Recorder[K]) Moves() []Move[K] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.moves)
}

// States returns the states that a stage went through, in order.
func (r *Recorder[K]) States(k K, id dag.ID) []dag.State {
	var all []dag.State
	for _, m := range r.Moves() {
		if m.Key == k && m.ID == id && !m.To.Since.IsZero() {
			all = append(all, m.To.State)
		}
	}
	return all
}

// When returns when a stage came to a state first, the zero time if never.
func (r *Recorder[K]) When(k K, id dag.ID, s dag.State) time.Time {
	for _, m := range r.Moves() {
		if m.Key == k && m.ID == id && m.To.State == s && !m.To.Since.IsZero() {
			return m.To.Since
		}
	}
	return time.Time{}
}

// Memo returns a copy of the memo of a key, as the moves tell it.
func (r *Recorder[K]) Memo(k K) dag.Memo {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.memos[k])
}
