package server

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/internal/pod"
)

// Overview is all pods with what blocks them, and what became of the manifests.
type Overview struct {
	Node  string
	Rows  []Row
	Files []File
}

// Row is a pod in one line.
type Row struct {
	Pod *v1.Pod
	Why explain.Report
}

// Look is all that is known of one pod, or of a chore of the node.
type Look struct {
	Node   string
	Pod    *v1.Pod // nil: a chore
	Why    explain.Report
	Stages []explain.Stage
	Trace  *explain.Trace // of the last start, else of the newest episode; nil: none
	Events []pod.Event    // oldest first
}

// Overview returns all pods that are not only remembered.
func (a *Agent) Overview() Overview {
	now, s := time.Now(), a.surroundings()
	o := Overview{Node: a.Node().Name, Files: a.Files()}
	for _, v := range a.Store.All() {
		if remembered(v) {
			continue
		}
		s.Pod, s.Phase, s.Stages = name(v), phase(v), a.stages(now, v)
		o.Rows = append(o.Rows, Row{Pod: a.pod(v), Why: explain.Why(now, s)})
	}
	return o
}

// Look returns one pod, or a chore of the node. ref is as podstore.Store.Find takes it.
func (a *Agent) Look(ref string) (Look, error) {
	v, err := a.Store.Find(ref)
	if err != nil {
		return Look{}, err
	}
	now := time.Now()
	l := Look{Node: a.Node().Name, Why: a.why(v), Stages: a.stages(now, v)}
	if !v.Key.IsChore() {
		l.Pod, l.Events = a.pod(v), a.Events(v.State.UID())
	}
	if e, ok := lastStart(a.Episodes(v.Key)); ok {
		t := traceOf(v, e)
		l.Trace = &t
	}
	return l, nil
}

// lastStart returns the newest start or, without one, the newest episode in
// which something happened.
func lastStart(episodes []journal.Episode) (last journal.Episode, ok bool) {
	for _, e := range episodes { // oldest first
		switch {
		case e.Kind == journal.Quiet, ok && last.Kind == journal.Start && e.Kind != journal.Start:
		default:
			last, ok = e, true
		}
	}
	return last, ok
}
