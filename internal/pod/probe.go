package pod

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// ProbeVerdict is what the results of a probe amount to.
type ProbeVerdict string

// ProbeState is what is known about one probe of one container. It is made by
// package stages/probe alone; the zero ProbeState knows nothing.
type ProbeState struct {
	ID      string       `json:"id"`                // the container that all of it is about
	Verdict ProbeVerdict `json:"verdict,omitempty"` // of the last threshold that was reached
	Since   time.Time    `json:"since,omitzero"`    // of the verdict
	Last    ProbeVerdict `json:"last,omitempty"`    // of the last result that counts, whatever the threshold
	Count   int32        `json:"count,omitempty"`   // results like Last in a row
	Checked time.Time    `json:"checked,omitzero"`  // end of the last check, whatever its outcome
	Due     time.Time    `json:"due,omitzero"`      // of the next check; zero: none
	Hold    bool         `json:"hold,omitempty"`    // no more checks of this container
}

// Equal reports whether two states say the same.
func (s ProbeState) Equal(o ProbeState) bool {
	times := s.Since.Equal(o.Since) && s.Checked.Equal(o.Checked) && s.Due.Equal(o.Due)
	s.Since, s.Checked, s.Due = o.Since, o.Checked, o.Due
	return times && s == o
}

// ProbeKey names a probe of a pod.
type ProbeKey struct {
	Container string `json:"container"`
	Kind      string `json:"kind"` // liveness, readiness, startup
}

// Probed: a check of a probe has ended.
type Probed struct {
	Probe ProbeKey
	State ProbeState
}

func (c Probed) apply(s *State) {
	s.Probes = maps.Clone(s.Probes)
	if s.Probes == nil {
		s.Probes = make(map[ProbeKey]ProbeState, 1)
	}
	s.Probes[c.Probe] = c.State
	s.Version++
}

// HookKey names a hook of one container.
type HookKey struct {
	ID   string // of the container in the runtime
	Kind string // postStart, preStop
}

// HookEnded: a hook has ended, well if Failure is empty.
type HookEnded struct {
	Hook    HookKey
	Failure string
}

// Hook is how a hook ended.
type Hook struct{ Failure string }

func (c HookEnded) apply(s *State) {
	hooks := make(map[HookKey]Hook, len(s.Hooks)+1)
	for k, h := range s.Hooks {
		if slices.ContainsFunc(s.Containers, func(ct Container) bool { return ct.ID == k.ID }) {
			hooks[k] = h // those of forgotten containers go
		}
	}
	hooks[c.Hook] = Hook{c.Failure}
	s.Hooks = hooks
	s.Version++
}

// HookRecord is one ended hook in a state file.
type HookRecord struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	Failure string `json:"failure,omitempty"`
}

func hookRecords(hooks map[HookKey]Hook) []HookRecord {
	var out []HookRecord
	for k, h := range hooks {
		out = append(out, HookRecord{k.ID, k.Kind, h.Failure})
	}
	slices.SortFunc(out, func(a, b HookRecord) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind)) })
	return out
}

func restoreHooks(records []HookRecord) map[HookKey]Hook {
	if len(records) == 0 {
		return nil
	}
	out := make(map[HookKey]Hook, len(records))
	for _, r := range records {
		out[HookKey{ID: r.ID, Kind: r.Kind}] = Hook{r.Failure}
	}
	return out
}

// ProbeRecord is one probe in a state file.
type ProbeRecord struct {
	ProbeKey
	State ProbeState `json:"state"`
}

func probeRecords(probes map[ProbeKey]ProbeState) []ProbeRecord {
	var out []ProbeRecord
	for k, s := range probes {
		out = append(out, ProbeRecord{k, s})
	}
	slices.SortFunc(out, func(a, b ProbeRecord) int {
		return cmp.Or(cmp.Compare(a.Container, b.Container), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

func restoreProbes(records []ProbeRecord) map[ProbeKey]ProbeState {
	if len(records) == 0 {
		return nil
	}
	out := make(map[ProbeKey]ProbeState, len(records))
	for _, r := range records {
		out[r.ProbeKey] = r.State
	}
	return out
}
