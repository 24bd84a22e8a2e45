package server

import (
	"cmp"
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// Word is the one word that tells most about a pod, as kubectl's users know it.
func Word(p *v1.Pod) string {
	ended := p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
	switch {
	case p.Annotations[AnnotationLeftAlone] != "":
		return "LeftAlone"
	case p.DeletionTimestamp != nil:
		return "Terminating"
	case p.Status.Reason != "":
		return p.Status.Reason
	case p.Status.Phase == v1.PodSucceeded:
		return "Completed"
	}
	if !ended {
		if w := initWord(p); w != "" {
			return w
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Reason != "" {
			return w.Reason
		}
	}
	return cmp.Or(string(p.Status.Phase), p.Annotations[AnnotationPhase])
}

// initWord tells of the first init container that the others wait for; empty
// when there is none.
func initWord(p *v1.Pod) string {
	for i, c := range p.Status.InitContainerStatuses {
		t, w := c.State.Terminated, c.State.Waiting
		up := c.State.Running != nil && c.Started != nil && *c.Started
		switch {
		case t != nil && t.ExitCode == 0, up && sidecar(p, c.Name):
			continue
		case t != nil:
			return "Init:" + cmp.Or(t.Reason, "Error")
		case w != nil && w.Reason != "" && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating":
			return "Init:" + w.Reason
		}
		return fmt.Sprintf("Init:%d/%d", i, len(p.Status.InitContainerStatuses))
	}
	return ""
}

// sidecar reports whether the init container of that name keeps running.
func sidecar(p *v1.Pod, name string) bool {
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; c.Name == name {
			return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
		}
	}
	return false
}

// Counts tells how many of the containers that run side by side are ready, as
// kubectl shows it, and how often any of a pod was started again.
func Counts(p *v1.Pod) (ready string, restarts int32) {
	n, of := 0, len(p.Spec.Containers)
	for _, c := range p.Status.ContainerStatuses {
		if c.Ready {
			n++
		}
		restarts += c.RestartCount
	}
	for _, c := range p.Status.InitContainerStatuses {
		restarts += c.RestartCount
		if sidecar(p, c.Name) && c.Ready && c.State.Running != nil {
			n++
		}
	}
	for i := range p.Spec.InitContainers {
		if sidecar(p, p.Spec.InitContainers[i].Name) {
			of++
		}
	}
	return fmt.Sprintf("%d/%d", n, of), restarts
}
