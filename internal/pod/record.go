package pod

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// RecordVersion is the version of the state file that this build writes.
const RecordVersion = 1

// Record is what a pod's state file keeps over a restart of the agent: what
// neither the source nor the runtime could tell again.
type Record struct {
	Version     int               `json:"version"`
	UID         types.UID         `json:"uid"`
	Incarnation int64             `json:"incarnation"`
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Source      string            `json:"source"`
	StartTime   time.Time         `json:"startTime,omitzero"`
	Admission   *Admission        `json:"admission,omitempty"`
	Removal     *Removal          `json:"removal,omitempty"`
	Verdict     *Verdict          `json:"verdict,omitempty"`
	Allocation  *Allocation       `json:"allocation,omitempty"`
	Resize      *Resize           `json:"resize,omitempty"`
	Finished    bool              `json:"finished,omitempty"`
	Restarts    map[string]uint32 `json:"restarts,omitempty"`
	Crashes     map[string]Crash  `json:"crashes,omitempty"`
	Exits       []Container       `json:"exits,omitempty"`
	IPs         []string          `json:"ips,omitempty"`
	Room        Room              `json:"room,omitzero"`
	Hooks       []HookRecord      `json:"hooks,omitempty"`
	Probes      []ProbeRecord     `json:"probes,omitempty"`
}

// RecordOf returns what is to be kept of s.
func RecordOf(s *State) Record {
	r := Record{
		Version: RecordVersion, UID: s.Identity.UID, Incarnation: s.Incarnation,
		Name: s.Identity.Name, Namespace: s.Identity.Namespace, Source: s.Source(),
		StartTime: s.StartTime, Removal: s.Removal, Verdict: s.Verdict, Allocation: s.Allocation, Resize: s.Resize, Finished: s.Phase == Finished,
		Restarts: maps.Clone(s.Restarts), Crashes: s.Crashes, Probes: probeRecords(s.Probes),
	}
	if s.Admission.Done {
		a := s.Admission
		r.Admission = &a
	}
	if s.Admission.OK && s.Phase != Finished {
		r.Room = s.Takes()
	}
	r.IPs, r.Hooks = s.IPs, hookRecords(s.Hooks)
	for _, sb := range s.Sandboxes {
		if len(sb.IPs) > 0 {
			r.IPs = sb.IPs
			break
		}
	}
	seen := map[string]bool{}
	for _, c := range s.Containers {
		if seen[c.Name] {
			continue
		}
		seen[c.Name] = true
		if r.Restarts == nil {
			r.Restarts = map[string]uint32{}
		}
		r.Restarts[c.Name] = max(r.Restarts[c.Name], c.Attempt+1)
		if c.Ended() {
			r.Exits = append(r.Exits, c)
		}
	}
	return r
}

// A record is older than anything else that is known: it only fills what is missing.
func (c Restored) apply(s *State) {
	r := c.Record
	s.Identity = s.Identity.or(Identity{Name: r.Name, Namespace: r.Namespace, UID: r.UID, Source: r.Source})
	if r.Incarnation != 0 {
		s.Incarnation = r.Incarnation
	}
	if s.StartTime.IsZero() {
		s.StartTime = r.StartTime
	}
	if !s.Admission.Done && r.Admission != nil {
		s.Admission = *r.Admission
	}
	if s.Removal == nil {
		s.Removal = r.Removal
	}
	if s.Verdict == nil {
		s.Verdict = r.Verdict
	}
	if s.Allocation == nil {
		s.Allocation, s.Resize = r.Allocation, r.Resize
	}
	if s.Restarts == nil {
		s.Restarts = r.Restarts
	}
	s.Room = r.Room
	if s.Hooks == nil {
		s.Hooks = restoreHooks(r.Hooks)
	}
	if s.IPs == nil {
		s.IPs = r.IPs
	}
	if s.Crashes == nil {
		s.Crashes = r.Crashes
	}
	if s.Probes == nil {
		s.Probes = restoreProbes(r.Probes)
	}
	for _, ct := range r.Exits {
		ct.Gone = false // if the runtime has lost it, the first look says so
		s.seeContainer(ct)
	}
	if r.Finished {
		s.Phase = Finished
	}
	s.Version++
}
