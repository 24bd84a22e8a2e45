package pod

import "time"

// Chore is what is known about a chore of the node. It is immutable.
type Chore struct {
	Asked uint64    // how often it was asked for
	Why   string    // who asked last
	At    time.Time // when that was
	Ended time.Time // when a stage of it ended last
	// Facts is what the chore's stages have learnt, in the chore's own words;
	// nil until something was. It must not be changed.
	Facts any
}

// Due asks for a chore: a period is over, or something happened that makes
// work for it. Due that come while the chore works are one more turn.
type Due struct {
	At  time.Time
	Why string
}

func (c Due) apply(s *State) {
	if s.Chore == nil {
		return
	}
	s.Chore.Asked++
	s.Chore.At, s.Chore.Why = c.At, c.Why
	s.Version++
}

// Learnt is what a stage of a chore found out, in place of what was known.
type Learnt struct{ Facts any }

func (c Learnt) apply(s *State) {
	if s.Chore == nil {
		return
	}
	s.Chore.Facts = c.Facts
	s.Version++
}

// Ran: a stage of a chore has ended.
type Ran struct{ At time.Time }

func (c Ran) apply(s *State) {
	if s.Chore == nil {
		return
	}
	s.Chore.Ended = c.At
	s.Version++
}

// FoldChore is [Fold] for the key of a chore.
func FoldChore(k Key, old *State, c Change) (s *State, changed bool) {
	next := State{Identity: Identity{Namespace: choreNamespace, Name: k.ChoreName()}, Chore: &Chore{}}
	if old != nil {
		next = *old
	}
	chore := *next.Chore
	next.Chore = &chore
	version := next.Version
	c.apply(&next)
	if next.Version == version {
		return old, false
	}
	return &next, true
}
