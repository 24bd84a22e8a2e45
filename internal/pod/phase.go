package pod

// Phase is where a pod stands in its life on this node.
//
//	pending ──▶ running ──▶ finishing ──▶ finished
//	   │           │            │            │
//	   └───────────┴─────┬──────┴────────────┘
//	                     ▼
//	                 deleting ──▶ forgotten ──▶ (pending again, if the UID came back)
type Phase uint8

// The phases of a pod.
const (
	Pending   Phase = iota // wanted, not yet admitted; or only found
	Active                 // admitted: made and kept running
	Finishing              // completed, judged or rejected: being taken down
	Finished               // taken down; what remains is there to be read
	Deleting               // its source no longer wants it
	Forgotten              // nothing is left
)

var phaseNames = [...]string{"pending", "running", "finishing", "finished", "deleting", "forgotten"}

// String returns the phase in lower case.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return "unknown"
}

// transitions says which phases may follow each one.
var transitions = [...][]Phase{
	Pending:   {Active, Finishing, Deleting},
	Active:    {Finishing, Deleting},
	Finishing: {Finished, Deleting},
	Finished:  {Deleting},
	Deleting:  {Forgotten},
	Forgotten: {},
}

// CanFollow reports whether a pod in phase p may move to next.
func (p Phase) CanFollow(next Phase) bool {
	for _, q := range transitions[p] {
		if q == next {
			return true
		}
	}
	return false
}

// advance moves s to the phase that its facts call for, if that may follow.
func advance(s *State) {
	if next := wanted(s); s.Phase.CanFollow(next) {
		s.Phase = next
	}
}

func wanted(s *State) Phase {
	switch {
	case s.Removal != nil:
		return Deleting
	case s.Verdict != nil, s.Admission.Done && !s.Admission.OK:
		return Finishing
	case s.Spec != nil && Complete(s):
		return Finishing
	case s.Admission.OK:
		return Active
	}
	return s.Phase
}
