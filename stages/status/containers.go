package status

import (
	"cmp"
	"slices"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Reasons and messages as the ecosystem knows them (kubelet v1.37.2).
const (
	reasonCreating     = "ContainerCreating"
	reasonInitializing = "PodInitializing"
	reasonUnknown      = "ContainerStatusUnknown"
	unknownExitCode    = 137

	lostMessage  = "The container could not be located when the pod was deleted.  The container used to be Running"
	endedMessage = "The container could not be located when the pod was terminated"

	// Of containers that go, or are gone, because all of the pod start anew.
	reasonRestartAll  = "RestartingAllContainers"
	restartAllMessage = "The container is removed because RestartAllContainers in place"

	prunedMessage = "The runtime no longer has the container. The pod was initialized, so it had completed."
)

// containers fills the statuses of all containers: init containers in the
// spec's order, the others by name.
func (c *computation) containers() {
	spec := &c.p.Spec
	initialized := true
	if n := len(spec.InitContainers); n > 0 {
		c.out.InitContainerStatuses = make([]v1.ContainerStatus, n)
		for i := range spec.InitContainers {
			u := unit{spec: &spec.InitContainers[i], kind: KindInit, turn: initialized}
			st := c.container(&u)
			c.out.InitContainerStatuses[i] = st
			initialized = initialized && passed(u.spec, &st)
		}
	}
	initialized = initialized || c.anyMade()
	c.out.ContainerStatuses = make([]v1.ContainerStatus, len(spec.Containers))
	for i := range spec.Containers {
		u := unit{spec: &spec.Containers[i], kind: KindContainer, turn: initialized}
		c.out.ContainerStatuses[i] = c.container(&u)
	}
	byName(c.out.ContainerStatuses)
	if n := len(spec.EphemeralContainers); n > 0 {
		c.out.EphemeralContainerStatuses = make([]v1.ContainerStatus, n)
		for i := range spec.EphemeralContainers {
			common := v1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon)
			u := unit{spec: &common, kind: KindEphemeral, turn: true}
			c.out.EphemeralContainerStatuses[i] = c.container(&u)
		}
		byName(c.out.EphemeralContainerStatuses)
	}
	if c.terminal && c.State.Phase == pod.Deleting {
		c.closeStates(initialized)
	}
}

func byName(list []v1.ContainerStatus) {
	slices.SortFunc(list, func(a, b v1.ContainerStatus) int { return cmp.Compare(a.Name, b.Name) })
}

// anyMade reports whether a regular container was ever made: then the pod's
// initialization is over.
func (c *computation) anyMade() bool {
	sb, ok := c.State.Sandbox()
	return ok && pod.Initialized(c.State, sb.ID)
}

// passed reports whether an init container lets the next ones begin.
func passed(spec *v1.Container, st *v1.ContainerStatus) bool {
	if pod.Sidecar(spec) {
		return st.Started != nil && *st.Started
	}
	return st.Ready
}

// unit is a container whose status is made.
type unit struct {
	spec *v1.Container
	kind string
	turn bool // all that it waits for among the init containers is done
}

// container returns the status of one container.
func (c *computation) container(u *unit) v1.ContainerStatus {
	st := v1.ContainerStatus{Name: u.spec.Name, Image: u.spec.Image, VolumeMounts: c.mounts(u.spec)}
	now, ok := c.State.Newest(u.spec.Name)
	entry := c.Memo[dag.ID{Kind: u.kind, Of: u.spec.Name}]
	switch next := c.State.Restarts[u.spec.Name]; {
	case c.pruned(u, &now, ok):
		st.State.Terminated = &v1.ContainerStateTerminated{Reason: "Completed", Message: prunedMessage}
		st.RestartCount = int32(now.Attempt)
	case ok && u.kind != KindEphemeral && (now.Reset || now.Gone && c.restarting()):
		c.anew(&st, &now)
	case ok:
		c.identify(&st, &now)
		c.given(&st, u.spec, &now)
		c.observed(u, &st, &now)
	case next > 0:
		st.RestartCount = int32(next - 1)
	}
	if st.State.Running == nil {
		c.waiting(u, &st, entry)
	}
	if ok && now.State == pod.Created && !now.Gone && st.State.Waiting != nil && st.State.Waiting.Reason == c.notYet() {
		st.State.Waiting.Reason = "" // made, not started
	}
	c.readiness(u, &st, now.ID)
	return st
}

// pruned reports whether an init container has done its work in the sandbox and
// the runtime has lost it; one of an earlier sandbox may still be there.
func (c *computation) pruned(u *unit, now *pod.Container, ok bool) bool {
	if u.kind != KindInit || pod.Sidecar(u.spec) || !c.anyMade() {
		return false
	}
	sb, _ := c.State.Sandbox()
	return !ok || (now.Ended() && now.SandboxID != sb.ID)
}

func (c *computation) identify(st *v1.ContainerStatus, now *pod.Container) {
	if now.Image != "" {
		st.Image = now.Image
	}
	if st.ImageID = now.ImageRef; st.ImageID == "" {
		st.ImageID = now.ImageID
	}
	st.ContainerID = c.Runtime + "://" + now.ID
	st.RestartCount = int32(now.Attempt)
}

// observed fills the state that the runtime shows. A container that went away
// under the agent ended nobody knows how; when it is to be started again it
// counts as restarted at once.
func (c *computation) observed(u *unit, st *v1.ContainerStatus, now *pod.Container) {
	if before, ok := c.State.Previous(u.spec.Name); ok && before.Reset {
		st.LastTerminationState.Terminated = c.reset(&before)
	} else if ok && before.Ended() {
		st.LastTerminationState.Terminated = c.terminated(&before, lostMessage)
	}
	lost := now.Lost() || (now.Unknown && !now.Gone)
	switch {
	case lost && c.State.Phase == pod.Active && u.kind != KindEphemeral && pod.Restarts(c.p, u.spec, u.kind == KindInit, *now):
		st.LastTerminationState.Terminated = c.terminated(now, lostMessage)
		st.RestartCount++
	case lost:
		st.State.Terminated = c.terminated(now, endedMessage)
	case now.State == pod.Running:
		st.State.Running = &v1.ContainerStateRunning{StartedAt: seconds(now.StartedAt)}
	case now.State == pod.Exited:
		st.State.Terminated = c.terminated(now, endedMessage)
	}
}

// restarting reports whether all containers are being removed to start anew.
func (c *computation) restarting() bool {
	e := c.Memo[dag.ID{Kind: KindRestart}]
	return e.Key != (dag.Key{}) && e.State != dag.Done
}

// anew fills the status of a container that was removed so that it starts anew
// with all others: that is a restart already.
func (c *computation) anew(st *v1.ContainerStatus, now *pod.Container) {
	c.identify(st, now)
	st.RestartCount++
	st.State.Waiting = &v1.ContainerStateWaiting{Reason: reasonRestartAll, Message: restartAllMessage}
	st.LastTerminationState.Terminated = c.reset(now)
}

// reset is the end of such a container, however it ended.
func (c *computation) reset(ct *pod.Container) *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{
		ExitCode: unknownExitCode, Reason: reasonRestartAll, Message: restartAllMessage,
		ContainerID: c.Runtime + "://" + ct.ID, StartedAt: seconds(ct.StartedAt), FinishedAt: seconds(ct.Exit.FinishedAt),
	}
}

func (c *computation) terminated(ct *pod.Container, unknown string) *v1.ContainerStateTerminated {
	t := &v1.ContainerStateTerminated{ContainerID: c.Runtime + "://" + ct.ID, StartedAt: seconds(ct.StartedAt)}
	if ct.State != pod.Exited || !ct.Detailed {
		t.ExitCode, t.Reason, t.Message = unknownExitCode, reasonUnknown, unknown
		return t
	}
	t.ExitCode, t.Reason, t.Message = ct.Exit.Code, ct.Exit.Reason, c.cut(ct.Exit.Message)
	t.FinishedAt = seconds(ct.Exit.FinishedAt)
	return t
}

// maxMessages is how many bytes the last words of a pod's containers may have
// together; each gets an equal part (kubelet v1.37.2).
const maxMessages = 12 << 10

// cut cuts a container's last words to their part, between two characters.
func (c *computation) cut(words string) string {
	spec := &c.p.Spec
	most := maxMessages / max(1, len(spec.Containers)+len(spec.InitContainers)+len(spec.EphemeralContainers))
	if len(words) <= most {
		return words
	}
	for most > 0 && !utf8.RuneStart(words[most]) {
		most--
	}
	return words[:most]
}

// readiness fills Ready and Started. An init container is ready when it has
// succeeded; the others while they run and their probes say so.
func (c *computation) readiness(u *unit, st *v1.ContainerStatus, id string) {
	started := st.State.Running != nil
	ready := started
	if u.kind == KindInit && !pod.Sidecar(u.spec) {
		t := st.State.Terminated
		ready = t != nil && succeeded(t)
	} else if started && c.Probes != nil && u.kind != KindEphemeral {
		started, ready = c.Probes(u.spec, id)
		ready = ready && started
	}
	st.Ready = ready && u.kind != KindEphemeral
	st.Started = &started
}

// closeStates ends, in the status of a pod that was deleted, whatever has no
// end: nothing runs any more. Containers whose turn never came stay waiting.
func (c *computation) closeStates(initialized bool) {
	last := -1
	for i := range c.out.InitContainerStatuses {
		if st := &c.out.InitContainerStatuses[i]; st.ContainerID != "" {
			last = i
		}
	}
	for i := range c.out.InitContainerStatuses[:last+1] {
		closeState(&c.out.InitContainerStatuses[i])
	}
	if !initialized {
		return
	}
	for i := range c.out.ContainerStatuses {
		closeState(&c.out.ContainerStatuses[i])
	}
}

func closeState(st *v1.ContainerStatus) {
	if st.State.Terminated == nil {
		st.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			ExitCode: unknownExitCode, Reason: reasonUnknown, Message: endedMessage,
		}}
		st.Ready = false
	}
}
