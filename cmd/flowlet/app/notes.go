package app

import (
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
)

// stepped tells the journal when a pod's start is over.
func (a *Agent) stepped(old, now podstore.View) {
	a.Journal.Folded(now.Key, old.State, now.State)
	if now.Status == nil {
		return
	}
	switch {
	case now.Status.Phase == v1.PodSucceeded:
		a.Journal.StartEnded(now.Key, "succeeded")
	case now.Status.Phase == v1.PodFailed:
		a.Journal.StartEnded(now.Key, "failed")
	case ready(now.Status) && !ready(old.Status):
		a.Journal.StartEnded(now.Key, "ready")
	}
}

func ready(s *v1.PodStatus) bool {
	if s == nil {
		return false
	}
	for i := range s.Conditions {
		if s.Conditions[i].Type == v1.PodReady {
			return s.Conditions[i].Status == v1.ConditionTrue
		}
	}
	return false
}

func (a *Agent) forgotten(k pod.Key, s *pod.State) {
	a.Events.Forget(s.UID())
	a.Journal.Forget(k)
}
