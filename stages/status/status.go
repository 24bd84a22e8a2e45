package status

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/qos"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Kinds of stages whose memo entries the status is made from. The instance of
// image stages is the reference as the spec has it, of the others the name of
// the container.
const (
	KindImageLook = "image.look"
	KindImage     = "image"
	KindInputs    = "inputs"
	KindSandbox   = "sandbox"
	KindInit      = "init"
	KindContainer = "container"
	KindEphemeral = "ephemeral"
	KindResize    = "resize"
	KindRestart   = "restart.all"
)

// CrashLoop begins the Why of a hold that waits out the crash-loop back-off.
const CrashLoop = "crash-loop back-off"

// In is all that a status is made from.
type In struct {
	Now   time.Time
	State *pod.State
	Memo  dag.Memo
	// Runtime is the scheme of container IDs: the runtime's name, as "containerd".
	Runtime string
	// HostIPs are the node's addresses, at most one per family, primary first.
	HostIPs []string
	// Prev is the status before this one, or nil. Times of unchanged
	// conditions, conditions of others and a terminal phase are kept from it.
	Prev *v1.PodStatus
	// Probes tells what the probes of a running container found; nil: no
	// container has probes.
	Probes func(c *v1.Container, id string) (started, ready bool)
	// StopSignals: the gate ContainerStopSignals is on.
	StopSignals bool
	// RecursiveReadOnly: the pod's runtime handler mounts read-only recursively.
	RecursiveReadOnly bool
}

// Compute returns the status of a pod; the zero status for one without a spec.
// It is pure. The result may share memory with Prev, so both are to be treated
// as read-only.
func Compute(in In) v1.PodStatus {
	c := &computation{In: in, p: in.State.Pod()}
	if c.p == nil {
		return v1.PodStatus{}
	}
	if c.Prev == nil {
		c.Prev = &c.p.Status // what the API server last showed; empty for a manifest
	}
	if a := in.State.Admission; a.Done && !a.OK {
		return c.rejected()
	}
	c.terminal = c.ended()
	c.containers()
	c.phase()
	c.addresses()
	c.podResources()
	c.conditions()
	return c.out
}

// computation is a Compute in progress.
type computation struct {
	In
	p        *v1.Pod
	terminal bool // the pod is over: what has not ended by now never will
	out      v1.PodStatus
}

func (c *computation) rejected() v1.PodStatus {
	a := c.State.Admission
	c.out.Phase, c.out.Reason, c.out.Message = v1.PodFailed, a.Reason, "Pod was rejected: "+a.Message
	c.common()
	c.out.Conditions = c.foreign()
	return c.out
}

// common fills what every status has.
func (c *computation) common() {
	c.out.ObservedGeneration = c.p.Generation
	if c.out.QOSClass = c.Prev.QOSClass; c.out.QOSClass == "" {
		c.out.QOSClass = qos.GetPodQOS(c.p)
	}
	switch {
	case !c.State.StartTime.IsZero():
		t := seconds(c.State.StartTime)
		c.out.StartTime = &t
	default:
		c.out.StartTime = c.Prev.StartTime
	}
}

// seconds is t as the API keeps it.
func seconds(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.Time{Time: t.Truncate(time.Second)}
}

// ended reports whether all that ran of an ending pod is over, and nothing
// that could start something is in flight or unsure.
func (c *computation) ended() bool {
	s := c.State
	switch {
	case s.Phase == pod.Finished:
		return true
	case s.Phase < pod.Finishing || c.mayRun():
		return false
	case s.Phase == pod.Finishing && s.Verdict == nil:
		return false // its phase comes from how its containers ended
	}
	for i := range s.Sandboxes {
		if sb := &s.Sandboxes[i]; sb.Ready && !sb.Gone {
			return false
		}
	}
	return true
}

// mayRun reports whether a container of the pod may have a process.
func (c *computation) mayRun() bool {
	s := c.State
	for i := range s.Containers {
		if s.Containers[i].Live() {
			return true
		}
	}
	if len(s.Unsure) > 0 {
		return true
	}
	for id, e := range c.Memo {
		if e.InFlight() {
			switch id.Kind {
			case KindSandbox, KindInit, KindContainer, KindEphemeral:
				return true
			}
		}
	}
	return false
}
