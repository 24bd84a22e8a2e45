package status

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Reasons of failed image stages. The first failed pull of a task key shows
// its own reason, every later one the back-off: so the reason moves once, and
// never back.
const (
	reasonPull        = "ErrImagePull"
	reasonPullBackOff = "ImagePullBackOff"
	reasonRegistry    = "RegistryUnavailable"
	reasonSignature   = "SignatureValidationFailed"

	reasonCrashLoop = "CrashLoopBackOff"
	reasonStart     = "CreateContainerError" // of an error that carries no word of its own
)

// waiting fills the state of a container that does not run: why it does not,
// when the memo knows; else that it is being made. What ended before moves to
// the last state when something keeps the container from starting again.
func (c *computation) waiting(u *unit, st *v1.ContainerStatus, entry dag.Entry) {
	w := c.blocked(u, entry, st.State.Terminated)
	switch {
	case w != nil:
		if st.State.Terminated != nil {
			st.LastTerminationState.Terminated = st.State.Terminated
		}
		st.State = v1.ContainerState{Waiting: w}
	case st.State.Terminated != nil, st.State.Waiting != nil:
	default:
		st.State.Waiting = &v1.ContainerStateWaiting{Reason: c.notYet()}
	}
}

func (c *computation) notYet() string {
	if len(c.p.Spec.InitContainers) > 0 {
		return reasonInitializing
	}
	return reasonCreating
}

// blocked returns what keeps a container from starting, or nil.
func (c *computation) blocked(u *unit, entry dag.Entry, last *v1.ContainerStateTerminated) *v1.ContainerStateWaiting {
	if entry.Key == (dag.Key{}) || entry.State == dag.Done || !u.turn {
		return nil
	}
	if entry.State == dag.Held && strings.HasPrefix(entry.Why, CrashLoop) {
		return &v1.ContainerStateWaiting{Reason: reasonCrashLoop, Message: c.crashLoop(u, entry)}
	}
	if entry.Err != nil {
		return failure(entry.Err, reasonStart)
	}
	if w := c.imageFailure(u.spec.Image); w != nil {
		return w
	}
	for i := range c.p.Spec.Volumes {
		v := &c.p.Spec.Volumes[i]
		if v.Image == nil || !slices.ContainsFunc(u.spec.VolumeMounts, func(m v1.VolumeMount) bool { return m.Name == v.Name }) {
			continue
		}
		if w := c.imageFailure(v.Image.Reference); w != nil {
			return w
		}
	}
	if e := c.Memo[dag.ID{Kind: KindInputs, Of: u.spec.Name}]; e.Err != nil {
		return failure(e.Err, "CreateContainerConfigError")
	}
	return nil
}

func (c *computation) imageFailure(ref string) *v1.ContainerStateWaiting {
	if e := c.Memo[dag.ID{Kind: KindImageLook, Of: ref}]; e.Err != nil {
		return failure(e.Err, "ImageInspectError")
	}
	if e := c.Memo[dag.ID{Kind: KindImage, Of: ref}]; e.Err != nil {
		return pullFailure(ref, e)
	}
	return nil
}

// crashLoop is the kubelet's message. The delay runs from the last exit, which
// is not in the entry: it is the end of the hold less the exit.
func (c *computation) crashLoop(u *unit, entry dag.Entry) string {
	delay := entry.Until.Sub(entry.Since)
	if now, ok := c.State.Newest(u.spec.Name); ok && !now.Exit.FinishedAt.IsZero() {
		delay = entry.Until.Sub(now.Exit.FinishedAt)
	}
	id := c.State.Identity
	return "back-off " + delay.Round(time.Second).String() + " restarting failed container=" + u.spec.Name +
		" pod=" + id.FullName() + "(" + string(id.UID) + ")"
}

func failure(err error, otherwise string) *v1.ContainerStateWaiting {
	reason := pod.ReasonOf(err)
	if reason == "" {
		reason = otherwise
	}
	return &v1.ContainerStateWaiting{Reason: reason, Message: err.Error()}
}

func pullFailure(ref string, e dag.Entry) *v1.ContainerStateWaiting {
	w := failure(e.Err, reasonPull)
	switch w.Reason {
	case reasonPull, reasonRegistry, reasonSignature:
		if e.Attempt > 1 {
			w.Message = "Back-off pulling image \"" + ref + "\": " + w.Reason + ": " + w.Message
			w.Reason = reasonPullBackOff
		}
	}
	return w
}
