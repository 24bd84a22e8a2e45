package main

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/server"
)

// word is the one word that tells most about a pod, as kubectl's users know it.
func word(p *v1.Pod) string {
	ended := p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
	switch {
	case p.Annotations[server.AnnotationLeftAlone] != "":
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
	return or(string(p.Status.Phase), p.Annotations[server.AnnotationPhase])
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
			return "Init:" + or(t.Reason, "Error")
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
