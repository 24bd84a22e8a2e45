package status

import (
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// owned reports whether the agent alone decides about a condition.
func owned(t v1.PodConditionType) bool {
	switch t {
	case v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled,
		v1.PodResizePending, v1.PodResizeInProgress, v1.AllContainersRestarting:
		return true
	}
	return false
}

const ownedConditions = 6

// foreign returns the conditions of others, which are kept as they are.
func (c *computation) foreign() []v1.PodCondition {
	var out []v1.PodCondition
	for i := range c.Prev.Conditions {
		if !owned(c.Prev.Conditions[i].Type) {
			out = append(out, c.Prev.Conditions[i])
		}
	}
	return out
}

// verdict is a condition that is still to be given its times.
type verdict struct {
	kind            v1.PodConditionType
	ok              bool
	reason, message string
}

func (c *computation) conditions() {
	c.out.Conditions = make([]v1.PodCondition, 0, max(ownedConditions, len(c.Prev.Conditions)))
	c.condition(c.sandboxReady())
	c.condition(c.initialized())
	containers := c.containersReady()
	c.condition(c.ready(containers))
	c.condition(containers)
	c.condition(verdict{kind: v1.PodScheduled, ok: true})
	if c.mayRestartAll() {
		c.condition(c.restartingAll())
	}
	v := c.State.Verdict
	c.resizing()
	disrupted := v != nil && v.Disruption && over(c.out.Phase)
	if disrupted {
		c.condition(verdict{v1.DisruptionTarget, true, v1.PodReasonTerminationByKubelet, v.Message})
	}
	for i := range c.Prev.Conditions {
		pc := &c.Prev.Conditions[i]
		if !owned(pc.Type) && (!disrupted || pc.Type != v1.DisruptionTarget) {
			c.out.Conditions = append(c.out.Conditions, *pc)
		}
	}
}

// mayRestartAll reports whether the end of a container may make all of the pod
// start anew.
func (c *computation) mayRestartAll() bool {
	for _, list := range [2][]v1.Container{c.p.Spec.InitContainers, c.p.Spec.Containers} {
		for i := range list {
			for _, r := range list[i].RestartPolicyRules {
				if r.Action == v1.ContainerRestartRuleActionRestartAllContainers {
					return true
				}
			}
		}
	}
	return false
}

func (c *computation) restartingAll() verdict {
	v := verdict{kind: v1.AllContainersRestarting, ok: c.restarting()}
	if v.ok {
		v.reason = "RestartAllContainersStarted"
	}
	return v
}

// condition appends a condition; its time is kept while its status stays.
func (c *computation) condition(v verdict) {
	out := v1.PodCondition{
		Type: v.kind, Status: v1.ConditionFalse, Reason: v.reason, Message: v.message,
		ObservedGeneration: c.p.Generation, LastTransitionTime: seconds(c.Now),
	}
	if v.ok {
		out.Status = v1.ConditionTrue
	}
	for i := range c.Prev.Conditions {
		if pc := &c.Prev.Conditions[i]; pc.Type == v.kind && pc.Status == out.Status {
			out.LastTransitionTime = pc.LastTransitionTime
		}
	}
	c.out.Conditions = append(c.out.Conditions, out)
}

func (c *computation) sandboxReady() verdict {
	v := verdict{kind: v1.PodReadyToStartContainers}
	host := c.p.Spec.HostNetwork
	sb, ok := c.State.Sandbox()
	switch {
	case !ok:
		v.message = "no pod sandbox exists"
	case c.readySandboxes() > 1:
		v.message = "multiple pod sandboxes are ready and need to be reconciled"
	case !sb.Ready:
		v.message = "pod sandbox is not ready"
	case sb.Detailed && sb.HostNetwork != host:
		v.message = "network namespace mode changed and sandbox needs to be recreated"
	case !host && len(sb.IPs) == 0:
		v.message = "pod sandbox has no IP address"
	default:
		v.ok = true
		return v
	}
	v.reason = "PodSandboxNotReady"
	return v
}

func (c *computation) readySandboxes() int {
	n := 0
	for i := range c.State.Sandboxes {
		if sb := &c.State.Sandboxes[i]; sb.Ready && !sb.Gone {
			n++
		}
	}
	return n
}

func (c *computation) initialized() verdict {
	v := verdict{kind: v1.PodInitialized, ok: true}
	if c.out.Phase == v1.PodSucceeded {
		v.reason = "PodCompleted"
		return v
	}
	for i := range c.out.ContainerStatuses {
		if st := &c.out.ContainerStatuses[i].State; st.Running != nil || st.Terminated != nil {
			return v
		}
	}
	var names []string
	for i := range c.out.InitContainerStatuses {
		if !passed(&c.p.Spec.InitContainers[i], &c.out.InitContainerStatuses[i]) {
			names = append(names, c.p.Spec.InitContainers[i].Name)
		}
	}
	if len(names) > 0 {
		v.ok, v.reason = false, "ContainersNotInitialized"
		v.message = "containers with incomplete status: [" + strings.Join(names, " ") + "]"
	}
	return v
}

func (c *computation) containersReady() verdict {
	v := verdict{kind: v1.ContainersReady}
	switch c.out.Phase {
	case v1.PodSucceeded:
		v.reason = "PodCompleted"
		return v
	case v1.PodFailed:
		v.reason = "PodFailed"
		return v
	}
	var names []string
	for i := range c.out.InitContainerStatuses {
		if spec := &c.p.Spec.InitContainers[i]; pod.Sidecar(spec) && !c.out.InitContainerStatuses[i].Ready {
			names = append(names, spec.Name)
		}
	}
	for i := range c.p.Spec.Containers {
		if name := c.p.Spec.Containers[i].Name; !c.isReady(name) {
			names = append(names, name)
		}
	}
	if v.ok = len(names) == 0; !v.ok {
		v.reason = "ContainersNotReady"
		v.message = "containers with unready status: [" + strings.Join(names, " ") + "]"
	}
	return v
}

func (c *computation) isReady(name string) bool {
	for i := range c.out.ContainerStatuses {
		if st := &c.out.ContainerStatuses[i]; st.Name == name {
			return st.Ready
		}
	}
	return false
}

// ready is what the containers are, and what the pod's readiness gates say.
func (c *computation) ready(containers verdict) verdict {
	v := containers
	v.kind = v1.PodReady
	if !v.ok {
		return v
	}
	var unready []string
	for _, gate := range c.p.Spec.ReadinessGates {
		status, known := c.statusOf(gate.ConditionType)
		name := strconv.Quote(string(gate.ConditionType))
		switch {
		case !known:
			unready = append(unready, "corresponding condition of pod readiness gate "+name+" does not exist.")
		case status != v1.ConditionTrue:
			unready = append(unready, "the status of pod readiness gate "+name+" is not \"True\", but "+string(status))
		}
	}
	if len(unready) > 0 {
		v.ok, v.reason, v.message = false, "ReadinessGatesNotReady", strings.Join(unready, ", ")
	}
	return v
}

func (c *computation) statusOf(t v1.PodConditionType) (v1.ConditionStatus, bool) {
	for _, list := range [2][]v1.PodCondition{c.p.Status.Conditions, c.Prev.Conditions} {
		for i := range list {
			if list[i].Type == t {
				return list[i].Status, true
			}
		}
	}
	return "", false
}

// resizing tells of a resize that waits or is carried out.
func (c *computation) resizing() {
	e := c.Memo[dag.ID{Kind: KindResize}]
	switch s := c.State; {
	case s.Phase != pod.Active || s.Spec == nil:
	case s.Spec.Asked != nil && e.State == dag.Held:
		if reason, message, ok := strings.Cut(e.Why, ": "); ok {
			c.condition(verdict{v1.PodResizePending, true, reason, message})
		}
	}
	if r := c.State.Resize; r == nil || c.State.Phase != pod.Active {
		return
	}
	v := verdict{kind: v1.PodResizeInProgress, ok: true}
	if e.Err != nil && c.State.Spec.Asked == nil {
		v.reason, v.message = v1.PodReasonError, e.Err.Error()
	}
	c.condition(v)
}
