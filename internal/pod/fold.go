package pod

// Fold returns the state after a change; changed is false when the change
// told nothing new, and then the state returned is the old one. The order,
// age and repetition of observations do not matter.
func Fold(old *State, c Change) (s *State, changed bool) {
	next := State{}
	if old != nil {
		next = *old
	}
	version := next.Version
	c.apply(&next)
	next.blur()
	if old != nil && next.Version == version {
		return old, false
	}
	advance(&next)
	return &next, true
}
