package probe

import (
	"hash/fnv"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Defaults of the API, for probes that were not defaulted.
const (
	defaultPeriod           = 10
	defaultFailureThreshold = 3
	defaultSuccessThreshold = 1
)

// In are the facts of a container that decide about one of its probes.
type In struct {
	Kind  Kind
	Probe *v1.Probe // nil: there is none
	ID    string    // of the container that is probed, the newest of its name
	// StartedAt is when the container started.
	StartedAt time.Time
	// Running: the container runs. Others are not checked.
	Running bool
	// Started is when liveness and readiness began to count: [StartedAt].
	// Zero: not yet.
	Started time.Time
	// Ending: the pod is being taken down. Only its readiness is checked on.
	Ending bool
	// Early, if it lies after the last check, asks for a readiness check at
	// that time instead of a period later, as long as the verdict is not
	// Passed. It is the time of a change of the pod that is not itself the
	// result of a probe.
	Early time.Time
	// Spread is when the agent came back to containers that ran without it.
	// What was due before then is due at a random part of a period after it,
	// so that not all is checked at once. Zero: nothing is spread.
	Spread time.Time
}

// Next returns what is known after a result at the time now; without one (None)
// it only says when the next check is due. It is pure, and doing it again
// without a result changes nothing. A result of another container is none.
//
// The first check is due exactly initialDelay after the start of the container
// (or when it has started, by its startup probe, if that is later), the next
// ones each whole period after it; those that were missed are not made up.
// Verdict and count begin anew with each container, and a result that comes
// when the container is not to be checked any more counts no longer.
func Next(s State, in In, r Result, now time.Time) State {
	if in.Probe == nil {
		return State{ID: in.ID}
	}
	if s.ID != in.ID {
		s = State{ID: in.ID}
	}
	s.Due = dueOf(s, in)
	if r.ID != s.ID || r.Outcome == None {
		return s
	}
	if r.Outcome.counts() && in.open() {
		s = counted(s, in, r.Outcome, now)
	}
	s.Checked = now
	s.Due = after(s.Due, seconds(in.Probe.PeriodSeconds, defaultPeriod), now)
	if !in.open() || s.Hold {
		s.Due = time.Time{}
	}
	return s
}

// open reports whether the container is to be checked at all now.
func (in In) open() bool {
	if !in.Running || in.ID == "" {
		return false
	}
	switch in.Kind {
	case Startup:
		return !in.Ending
	case Liveness:
		return !in.Ending && !in.Started.IsZero()
	case Readiness:
		return !in.Started.IsZero()
	}
	return false
}

// dueOf returns when the next check is due.
func dueOf(s State, in In) time.Time {
	if !in.open() || s.Hold {
		return time.Time{}
	}
	due := s.Due
	switch {
	case s.Checked.IsZero():
		due = later(in.StartedAt.Add(time.Duration(in.Probe.InitialDelaySeconds)*time.Second), in.Started)
	case due.IsZero(): // it was closed and is open again
		due = s.Checked.Add(seconds(in.Probe.PeriodSeconds, defaultPeriod))
	}
	if in.Kind == Readiness && s.Verdict != Passed && !s.Checked.IsZero() && in.Early.After(s.Checked) && in.Early.Before(due) {
		due = in.Early
	}
	if due.Before(in.Spread) { // so it started before then, too
		due = in.Spread.Add(part(in, seconds(in.Probe.PeriodSeconds, defaultPeriod)))
	}
	return due
}

// counted takes a result that counts.
func counted(s State, in In, o Outcome, now time.Time) State {
	result, threshold := Passed, most(in.Probe.SuccessThreshold, defaultSuccessThreshold)
	if o == Failure {
		result, threshold = Failed, most(in.Probe.FailureThreshold, defaultFailureThreshold)
	}
	if s.Last != result {
		s.Last, s.Count = result, 0
	}
	if s.Count < math.MaxInt32 {
		s.Count++
	}
	if s.Count < threshold || s.Hold {
		return s
	}
	if s.Verdict != result {
		s.Verdict, s.Since = result, now
	}
	// What follows is the end of this container, or no question any more.
	s.Hold = in.Kind == Startup || (in.Kind == Liveness && result == Failed)
	return s
}

func most(field, missing int32) int32 {
	if field <= 0 {
		return missing
	}
	return field
}

// after returns the first time after now that is whole periods after due.
func after(due time.Time, period time.Duration, now time.Time) time.Time {
	if due.IsZero() {
		return now.Add(period)
	}
	due = due.Add(period)
	if late := now.Sub(due); late >= 0 {
		due = due.Add((late/period + 1) * period)
	}
	return due
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// part is a random part of a period, the same for the same probe of a container.
func part(in In, period time.Duration) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(in.ID + "/" + string(in.Kind))) // never fails
	return time.Duration(float64(h.Sum64()>>11) / (1 << 53) * float64(period))
}
