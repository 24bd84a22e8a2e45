package status

import (
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

// phase fills phase, reason and message, and what every status has. A
// terminal phase is never left; it is told when nothing can run any more.
func (c *computation) phase() {
	c.common()
	prev := c.Prev
	switch {
	case over(prev.Phase):
		c.out.Phase = prev.Phase
	case over(c.p.Status.Phase): // the API server's terminal phase wins
		c.out.Phase = c.p.Status.Phase
	default:
		c.out.Phase = c.fromContainers()
		c.judge()
	}
	if c.out.Reason == "" && c.out.Message == "" && c.out.Phase == prev.Phase {
		c.out.Reason, c.out.Message = prev.Reason, prev.Message
	}
}

func over(p v1.PodPhase) bool { return p == v1.PodSucceeded || p == v1.PodFailed }

// judge applies what the node decided about the pod, and holds a terminal
// phase back while something may run. Of a finished pod nothing can: at a
// restart of the agent it may still look so, before all is looked at again.
func (c *computation) judge() {
	if v := c.State.Verdict; v != nil {
		c.out.Phase, c.out.Reason, c.out.Message = v1.PodFailed, v.Reason, v.Message
	}
	if over(c.out.Phase) && c.State.Phase != pod.Finished && c.mayRun() {
		c.out.Reason, c.out.Message = "", ""
		if c.out.Phase = c.Prev.Phase; c.out.Phase == "" {
			c.out.Phase = v1.PodRunning
		}
	}
	if c.terminal && !over(c.out.Phase) && (c.State.Phase == pod.Finished || !c.State.Spec.Static()) {
		c.out.Phase = v1.PodFailed // it will never run again, and did not end well
	}
}

// tally counts the states of regular containers.
type tally struct{ running, waiting, stopped, succeeded int }

func (t *tally) add(st *v1.ContainerStatus) {
	ended := st.State.Terminated
	switch {
	case st.State.Running != nil:
		t.running++
		return
	case ended == nil && st.LastTerminationState.Terminated == nil:
		t.waiting++
		return
	case ended == nil: // waits to be started again
		ended = st.LastTerminationState.Terminated
	}
	t.stopped++
	if succeeded(ended) {
		t.succeeded++
	}
}

func succeeded(t *v1.ContainerStateTerminated) bool {
	return t.ExitCode == 0 && t.Reason != "OOMKilled"
}

func (c *computation) fromContainers() v1.PodPhase {
	init := c.initPhase()
	if init.failed {
		return v1.PodFailed
	}
	var t tally
	for i := range c.out.ContainerStatuses {
		t.add(&c.out.ContainerStatuses[i])
	}
	regular := t.running + t.stopped
	for i := range c.out.InitContainerStatuses {
		if pod.Sidecar(&c.p.Spec.InitContainers[i]) && c.out.InitContainerStatuses[i].State.Running != nil {
			t.running++
		}
	}
	switch {
	case init.pending, init.sidecars && regular == 0, t.waiting > 0:
		return v1.PodPending
	case t.running > 0:
		return v1.PodRunning
	case c.terminal && !c.State.Spec.Static():
	case c.restarts():
		return v1.PodRunning
	}
	if t.succeeded == t.stopped {
		return v1.PodSucceeded
	}
	return v1.PodFailed
}

// progress is how far the init containers are.
type progress struct {
	pending  bool // one is still to end well
	sidecars bool // a sidecar has not started
	failed   bool // one has failed for good
}

func (c *computation) initPhase() (p progress) {
	for i := range c.out.InitContainerStatuses {
		spec, st := &c.p.Spec.InitContainers[i], &c.out.InitContainerStatuses[i]
		switch {
		case passed(spec, st):
			continue
		case pod.Sidecar(spec):
			p.sidecars = true
			continue
		}
		p.pending = true
		now, ok := c.State.Newest(spec.Name)
		if ok && now.Ended() && !now.Reset && !now.Succeeded() && !pod.Restarts(c.p, spec, true, now) && !c.anyMade() {
			p.failed = true
		}
	}
	return p
}

// restarts reports whether a container that ended may be started again. One that
// is created runs before long, and while it is not known how one ended, nothing
// is decided.
func (c *computation) restarts() bool {
	for i := range c.p.Spec.Containers {
		spec := &c.p.Spec.Containers[i]
		if now, ok := c.State.Newest(spec.Name); !ok || now.Reset || !now.Ended() || pod.Restarts(c.p, spec, false, now) {
			return true
		}
	}
	return false
}
