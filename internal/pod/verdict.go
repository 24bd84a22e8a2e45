package pod

import "time"

// ReasonEvicted is the reason of a pod that had to make room: it was over a
// limit of its own, or the node ran short.
const ReasonEvicted = "Evicted"

// ReasonDeadlineExceeded is the reason of a pod that was longer on the node than
// its spec allows (activeDeadlineSeconds).
const ReasonDeadlineExceeded = "DeadlineExceeded"

// Verdict is why the node itself ends a pod for good: it was evicted, its
// active deadline is over, the node shuts down. The pod then has failed, is
// taken down as one that completed is, and is never started again, not even by
// a later agent.
type Verdict struct {
	Reason  string    `json:"reason"`            // of the pod's status, one word: Evicted, DeadlineExceeded, Terminated
	Message string    `json:"message,omitempty"` // of the pod's status, for people
	At      time.Time `json:"at"`                // the teardown's grace runs from here
	// Grace is what the containers get to end by themselves, from At on, in
	// place of the pod's own; 0 and less: none. Nil: the pod's own.
	Grace *time.Duration `json:"grace,omitempty"`
	// Disruption says that the pod failed through no fault of its own, so its
	// status gets the condition DisruptionTarget too.
	Disruption bool `json:"disruption,omitempty"`
}

// Judged: the node ends the pod. Whoever finds a reason to do so emits this
// change under the pod's key, and has nothing else to do: the fold moves the
// pod to [Finishing], whose graph stops its containers (with their preStop
// hooks, all by one deadline), stops the sandbox, unmounts and removes the
// cgroup; the verdict goes to the state file before anything is stopped; the
// status shows Failed with reason and message as soon as nothing runs any more;
// and an event with the verdict's reason and message is told once, Normal for
// DeadlineExceeded and Warning for all else.
//
// The first verdict stands, and so does a removal: of what is judged later only
// a sooner end counts. A pod that completed or was rejected ends by itself and
// is not judged.
type Judged struct{ Verdict Verdict }

func (c Judged) apply(s *State) {
	v := c.Verdict
	if v.Grace != nil {
		grace := max(0, *v.Grace)
		v.Grace = &grace
	}
	switch by := v.deadline(s.Grace()); {
	case s.Phase < Finishing && s.Removal == nil && s.Verdict == nil:
		s.Verdict = &v
	case s.Phase == Finished || s.Phase == Forgotten || !by.Before(s.KillBy()):
		return
	case s.Removal != nil:
		s.Removal = &Removal{At: s.Removal.At, Grace: max(0, by.Sub(s.Removal.At))}
	default:
		sooner, grace := *s.Verdict, max(0, by.Sub(s.Verdict.At))
		sooner.Grace = &grace
		s.Verdict = &sooner
	}
	s.Version++
}

// deadline is when every container must have been killed.
func (v *Verdict) deadline(own time.Duration) time.Time {
	if v.Grace != nil {
		own = *v.Grace
	}
	return v.At.Add(own)
}

// KillBy returns when every container of a pod that is to go must have been
// killed; zero for one that nobody wants to go, also when it completed.
func (s *State) KillBy() time.Time {
	switch {
	case s.Removal != nil:
		return s.Removal.Deadline()
	case s.Verdict != nil:
		return s.Verdict.deadline(s.Grace())
	}
	return time.Time{}
}
