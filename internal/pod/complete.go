package pod

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Sidecar reports whether an init container is one that keeps running beside
// the others (restartPolicy Always).
func Sidecar(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// Restarts reports whether a container that ended is to be started again, by
// the rules for its exit code, its own restart policy and then the pod's. Init containers of a pod with
// policy Always restart on failure only.
func Restarts(p *v1.Pod, c *v1.Container, init bool, ended Container) bool {
	if ruled(c, ended) != "" {
		return true
	}
	policy := p.Spec.RestartPolicy
	if init && policy == v1.RestartPolicyAlways {
		policy = v1.RestartPolicyOnFailure
	}
	if c.RestartPolicy != nil {
		policy = v1.RestartPolicy(*c.RestartPolicy)
	}
	switch policy {
	case v1.RestartPolicyNever:
		return false
	case v1.RestartPolicyOnFailure:
		return !ended.Succeeded()
	default:
		return true
	}
}

// RestartsAll reports whether the end of a container makes all containers of
// its pod start anew. It does so until the containers were [Reset].
func RestartsAll(c *v1.Container, ended Container) bool {
	return !ended.Reset && ruled(c, ended) == v1.ContainerRestartRuleActionRestartAllContainers
}

// ruled returns what the first rule that matches the exit code says is to be
// done; empty when none does.
func ruled(c *v1.Container, ended Container) v1.ContainerRestartRuleAction {
	if ended.State != Exited || !ended.Detailed {
		return ""
	}
	for _, r := range c.RestartPolicyRules {
		if r.ExitCodes == nil {
			continue
		}
		in := slices.Contains(r.ExitCodes.Values, ended.Exit.Code)
		if in == (r.ExitCodes.Operator == v1.ContainerRestartRuleOnExitCodesOpIn) {
			return r.Action
		}
	}
	return ""
}

// Initialized reports whether a regular container was made in that sandbox:
// init containers that ended are then never run again in it.
func Initialized(s *State, sandbox string) bool {
	p := s.Pod()
	for i := range p.Spec.Containers {
		if _, ok := s.NewestIn(p.Spec.Containers[i].Name, sandbox); ok {
			return true
		}
	}
	return false
}

// Complete reports whether nothing of the pod will ever be started again: all
// regular containers ended for good, or an init container failed for good, or
// the sandbox of a pod that never restarts went away under its containers.
func Complete(s *State) bool {
	p := s.Pod()
	if failedInit(s, p) {
		return true
	}
	ended, live := 0, false
	for i := range p.Spec.Containers {
		c, ok := s.Newest(p.Spec.Containers[i].Name)
		live = live || (ok && c.Live())
		if ok && c.Ended() && !c.Reset && !Restarts(p, &p.Spec.Containers[i], false, c) {
			ended++
		}
	}
	if ended == len(p.Spec.Containers) {
		return true
	}
	return p.Spec.RestartPolicy == v1.RestartPolicyNever && !live && len(s.Containers) > 0 && sandboxLost(s)
}

func failedInit(s *State, p *v1.Pod) bool {
	sb, ok := s.Sandbox()
	if !ok || Initialized(s, sb.ID) {
		return false
	}
	for i := range p.Spec.InitContainers {
		spec := &p.Spec.InitContainers[i]
		c, ok := s.NewestIn(spec.Name, sb.ID)
		if ok && c.Ended() && !c.Succeeded() && !Restarts(p, spec, true, c) {
			return true
		}
	}
	return false
}

func sandboxLost(s *State) bool {
	if len(s.Sandboxes) == 0 {
		return false
	}
	sb, ok := s.Sandbox()
	return !ok || !sb.Ready
}
