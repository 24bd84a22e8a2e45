package pod

// Fold returns the state after a change; changed is false when the change
// told nothing new, and then the state returned is the old one. The order,
// age and repetition of observations do not matter.
func Fold(old *State, c Change) (s *State, changed bool) {
	if old == nil && showsNothing(c) || old != nil && tellsNothing(old, c) {
		return old, false
	}
	next := State{}
	if old != nil {
		next = *old
	}
	version := next.Version
	c.apply(&next)
	next.blur()
	next.settleResize()
	if old != nil && next.Version == version {
		return old, false
	}
	advance(&next)
	return &next, true
}

// showsNothing reports whether c is a look that found nothing: that of a pod
// that was forgotten meanwhile must not make it known again.
func showsNothing(c Change) bool {
	o, ok := c.(Observed)
	return ok && len(o.Sandboxes)+len(o.Containers) == 0
}

// tellsNothing finds out without an allocation whether one of the changes that
// come again and again is known already: sources repeat what they know.
func tellsNothing(old *State, c Change) bool {
	probe := *old
	switch c := c.(type) {
	case SpecSet:
		c.apply(&probe)
	case Observed:
		c.apply(&probe)
	default:
		return false
	}
	return probe.Version == old.Version
}
