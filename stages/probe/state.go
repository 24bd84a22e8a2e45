package probe

import (
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

// Kind is what a probe is for.
type Kind string

// The kinds of probes.
const (
	Liveness  Kind = "liveness"
	Readiness Kind = "readiness"
	Startup   Kind = "startup"
)

// Kinds lists the kinds of probes in the order in which they matter.
func Kinds() []Kind { return []Kind{Startup, Liveness, Readiness} }

// Of returns the container's probe of that kind, or nil.
func (k Kind) Of(c *v1.Container) *v1.Probe {
	switch k {
	case Liveness:
		return c.LivenessProbe
	case Readiness:
		return c.ReadinessProbe
	case Startup:
		return c.StartupProbe
	}
	return nil
}

// title is the word in events.
func (k Kind) title() string {
	switch k {
	case Liveness:
		return "Liveness"
	case Readiness:
		return "Readiness"
	case Startup:
		return "Startup"
	}
	return string(k)
}

// Outcome is how one check ended.
type Outcome string

// The outcomes of a check. Only the middle three count.
const (
	None    Outcome = ""        // no check, or one that was given up
	Success Outcome = "success" // as it should be
	Warning Outcome = "warning" // counts as success
	Failure Outcome = "failure"
	Errored Outcome = "error" // the check could not be made
)

func (o Outcome) counts() bool { return o == Success || o == Warning || o == Failure }

// Verdict is what the results of a probe amount to. Unknown means that no
// threshold was reached: then a container is alive, not started and not ready.
type Verdict = pod.ProbeVerdict

// The verdicts.
const (
	Unknown Verdict = ""
	Passed  Verdict = "passed"
	Failed  Verdict = "failed"
)

// State is what is known about one probe of one container. It is made by
// [Next] alone, is JSON for state files, and the zero State knows nothing.
type State = pod.ProbeState

// Adopt returns the state of a probe of a container that was found running
// without a record, with the verdict that others show: nothing of it changes
// without a result. A startup probe that has passed is not asked again.
func Adopt(k Kind, id string, v Verdict) State {
	return State{ID: id, Verdict: v, Hold: k == Startup && v == Passed}
}
