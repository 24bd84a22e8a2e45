package picture

import (
	"slices"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/explain"
)

// idle reports whether there is nothing to say about a stage: nothing to do,
// and nothing remembered.
func idle(s explain.Stage) bool {
	return s.Do == "" && s.State == explain.StateNew
}

// background are the kinds of stages that every pod has in case that something has to be undone or looked at. Of one that is
// done the memo does not tell whether it ever was to be done.
var background = []string{"observe", "stop", "sandbox.stop", "prune", "record", "status"}

// Shown reports which stages of a graph are in its picture: those that there is something to say about. While the pod is
// being made, and not taken down, stages of the background are there only when they have something to do.
func Shown(stages []explain.Stage) map[string]bool {
	made := slices.ContainsFunc(stages, func(s explain.Stage) bool { return s.Kind == "sandbox" })
	shown := make(map[string]bool, len(stages))
	for _, s := range stages {
		rests := s.Do == "" && s.State == dag.Done.String() && slices.Contains(background, s.Kind)
		shown[s.ID] = !idle(s) && (!made || !rests)
	}
	return shown
}

// sparse returns the edges that a picture needs. A way through a stage that is
// not shown becomes one edge, and an edge goes where a longer way says the same.
func sparse(stages []explain.Stage, shown map[string]bool) []line {
	before := make(map[string]map[string]bool, len(stages)) // by stage: the shown ones that it comes after; true: needs
	for _, s := range stages {                              // each comes after those it needs
		in := map[string]bool{}
		add := func(ids []string, need bool) {
			for _, id := range ids {
				if shown[id] {
					in[id] = in[id] || need
					continue
				}
				for far, needs := range before[id] {
					in[far] = in[far] || need && needs
				}
			}
		}
		add(s.Need, true)
		add(s.After, false)
		before[s.ID] = in
	}
	var out []line
	for _, s := range stages {
		if !shown[s.ID] {
			continue
		}
		for _, from := range stages {
			need, ok := before[s.ID][from.ID]
			if ok && !byOthers(before, s.ID, from.ID) {
				out = append(out, line{From: from.ID, To: s.ID, After: !need})
			}
		}
	}
	return slices.Clip(out)
}

// byOthers reports whether a way of two edges or more leads to a stage.
func byOthers(before map[string]map[string]bool, to, from string) bool {
	seen := map[string]bool{}
	var reach func(id string) bool
	reach = func(id string) bool {
		if seen[id] {
			return false
		}
		seen[id] = true
		for b := range before[id] {
			if b == from || reach(b) {
				return true
			}
		}
		return false
	}
	for b := range before[to] {
		if b != from && reach(b) {
			return true
		}
	}
	return false
}
