package probe

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// Lookup returns the state of a probe of one container name.
type Lookup func(k Kind) State

// about returns the state of a probe if it is about that container.
func (of Lookup) about(k Kind, id string) State {
	if s := of(k); s.ID == id {
		return s
	}
	return State{ID: id}
}

// StartedAt returns since when liveness and readiness of a running container
// count: since its start, or since its startup probe has passed; zero: not yet.
func StartedAt(c *v1.Container, id string, start time.Time, of Lookup) time.Time {
	if c.StartupProbe == nil {
		return start
	}
	s := of.about(Startup, id)
	switch {
	case s.Verdict != Passed:
		return time.Time{}
	case s.Since.IsZero(): // adopted
		return start
	}
	return s.Since
}

// Verdicts tells what the probes of a running container found: whether it has
// started, and whether it is ready.
func Verdicts(c *v1.Container, id string, of Lookup) (started, ready bool) {
	started = c.StartupProbe == nil || of.about(Startup, id).Verdict == Passed
	ready = started && (c.ReadinessProbe == nil || of.about(Readiness, id).Verdict == Passed)
	return started, ready
}

// Condemned tells which probe says that a running container has to be stopped,
// and the message of the stop's event; "" when none does. The probe's own grace
// period, if it has one, then takes the place of the pod's.
func Condemned(c *v1.Container, id string, of Lookup) (why string, grace *time.Duration) {
	for _, k := range []Kind{Startup, Liveness} {
		probe := k.Of(c)
		if probe == nil || of.about(k, id).Verdict != Failed {
			continue
		}
		if own := probe.TerminationGracePeriodSeconds; own != nil {
			d := time.Duration(*own) * time.Second
			grace = &d
		}
		return "Container " + c.Name + " failed " + string(k) + " probe", grace
	}
	return "", nil
}
