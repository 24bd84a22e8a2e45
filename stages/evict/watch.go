package evict

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/usage"
)

// Watch remembers from look to look which thresholds are met and since when.
// It may not be used concurrently.
type Watch struct {
	Thresholds []Threshold
	// Transition is how long a condition stays after it was met last.
	Transition time.Duration

	since      map[int]time.Time // thresholds that are met, by index, since when
	pressed    map[v1.NodeConditionType]pressed
	lastSample time.Time
}

type pressed struct{ since, last time.Time }

// Due is a threshold that is to be acted on, with what was seen.
type Due struct {
	Threshold
	Seen usage.Amount
}

// Look takes in a measurement and returns the thresholds that are met and
// whose grace is over, in the order in which they are to be acted on: memory
// first, then as they were configured. A measurement that was looked at
// already gives none.
func (w *Watch) Look(now time.Time, n *usage.Node) []Due {
	since := map[int]time.Time{}
	conditions := map[v1.NodeConditionType]bool{}
	var due []Due
	for i, t := range w.Thresholds {
		seen := t.Signal.Read(n)
		first, was := w.since[i]
		if !t.met(seen, was) {
			continue
		}
		if !was {
			first = now
		}
		since[i] = first
		conditions[t.Signal.about().condition] = true
		if now.Sub(first) >= t.Grace {
			due = append(due, Due{t, seen})
		}
	}
	w.since = since
	w.press(now, conditions)
	fresh := n.At.After(w.lastSample)
	w.lastSample = n.At
	if !fresh {
		return nil
	}
	slices.SortStableFunc(due, func(a, b Due) int { return order(a.Signal) - order(b.Signal) })
	return due
}

func order(s Signal) int {
	if s == MemoryAvailable || s == AllocatableMemoryAvailable {
		return 0
	}
	return 1
}

// met compares; one that was met already stays so until there is Reclaim more.
// What has no capacity is not there and not watched.
func (t *Threshold) met(seen usage.Amount, was bool) bool {
	if seen.Capacity <= 0 {
		return false
	}
	least := t.Value.Of(seen.Capacity)
	if was {
		least += t.Reclaim.Of(seen.Capacity)
	}
	return seen.Available < least
}

func (w *Watch) press(now time.Time, met map[v1.NodeConditionType]bool) {
	if w.pressed == nil {
		w.pressed = map[v1.NodeConditionType]pressed{}
	}
	for c := range met {
		p, was := w.pressed[c]
		if !was {
			p.since = now
		}
		p.last = now
		w.pressed[c] = p
	}
	for c, p := range w.pressed {
		if !met[c] && now.Sub(p.last) >= w.Transition {
			delete(w.pressed, c)
		}
	}
}

// Condition is one of the node's pressures.
type Condition struct {
	Type  v1.NodeConditionType
	Since time.Time
}

// Conditions returns the pressures that the node is under: those met, and
// those met not long ago, by type.
func (w *Watch) Conditions() []Condition {
	var out []Condition
	for _, c := range [...]v1.NodeConditionType{v1.NodeDiskPressure, v1.NodeMemoryPressure, v1.NodePIDPressure} {
		if p, ok := w.pressed[c]; ok {
			out = append(out, Condition{c, p.since})
		}
	}
	return out
}
