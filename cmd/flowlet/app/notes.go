package app

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
	"github.com/flowlet/flowlet/stages/graph"
)

// stepped tells the journal when a pod's start is over, and users what they
// would not expect.
func (a *Agent) stepped(old, now podstore.View) {
	defer a.changes.Ring()
	a.Journal.Folded(now.Key, old.State, now.State)
	a.noteFields(old, now)
	a.noteName(old, now)
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

// noteFields says once which fields of a pod have no effect in this build.
func (a *Agent) noteFields(old, now podstore.View) {
	spec := now.State.Spec
	if spec == nil || old.State != nil && old.State.Spec == spec {
		return
	}
	fields := a.unsupported(spec.Pod)
	if len(fields) == 0 {
		return
	}
	text := "this build of flowlet does not act on " + strings.Join(fields, ", ")
	a.Events.Event(spec.Pod, "", v1.EventTypeWarning, "FieldNotSupported", text)
	a.log.Warn("fields of a pod have no effect", "pod", spec.Pod.Namespace+"/"+spec.Pod.Name, "manifest", spec.Path, "fields", fields)
}

// noteName says once that a pod waits because another one, that is wanted too,
// has its name.
func (a *Agent) noteName(old, now podstore.View) {
	s := now.State
	if s.Spec == nil || s.Admission.Done || s.Removal != nil {
		return
	}
	admit := dag.ID{Kind: graph.KindAdmit}
	if now.Memo[admit].State != dag.Held || old.Memo[admit].Why == now.Memo[admit].Why {
		return
	}
	holder, held := a.Store.NameHolder(s)
	if !held || !a.wanted(holder) {
		return
	}
	a.Events.Event(s.Spec.Pod, "", v1.EventTypeWarning, "NameConflict",
		"another pod of this name is here, UID "+string(holder)+": this one waits until that is gone")
}

func (a *Agent) wanted(k pod.Key) bool {
	s := a.state(k)
	return s != nil && s.Removal == nil && s.Spec != nil
}
