package server

import (
	"fmt"
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
)

func name(v podstore.View) string { return v.State.Identity.Namespace + "/" + v.State.Identity.Name }

func (a *Agent) why(v podstore.View) explain.Report {
	now := time.Now()
	s := a.surroundings()
	s.Pod, s.Phase, s.Stages = name(v), phase(v), a.stages(now, v)
	return explain.Why(now, s)
}

// surroundings are what pods have in common, for a look at one of them: the
// queues, and who changes which object.
func (a *Agent) surroundings() explain.Subject {
	s := explain.Subject{Owners: map[string]explain.Work{}}
	for _, q := range a.Queues() {
		s.Queues = append(s.Queues, a.queue(q))
	}
	for _, other := range append(a.Store.All(), a.Store.Chores()...) {
		for id, e := range a.memo(other) {
			if e.InFlight() && e.Owns != "" {
				s.Owners[e.Owns] = explain.Work{Pod: name(other), Stage: id.String(), Since: e.Since}
			}
		}
	}
	return s
}

// memo is what is remembered of a pod now; of one that was just forgotten,
// what was remembered last.
func (a *Agent) memo(v podstore.View) dag.Memo {
	if m := a.Memo(v.Key); m != nil {
		return m
	}
	return v.Memo
}

func phase(v podstore.View) string {
	if v.Key.IsChore() {
		return "chore"
	}
	return v.State.Phase.String()
}

func (a *Agent) queue(q dag.Queue[pod.Key]) explain.Queue {
	out := explain.Queue{Class: q.Class, Slots: q.Row.Slots, Stopped: q.Stopped}
	for _, r := range q.Running {
		out.Running = append(out.Running, a.work(r.Ref, r.Since))
	}
	for _, r := range q.Lost {
		out.Lost = append(out.Lost, a.work(r.Ref, r.Since))
	}
	for _, w := range q.Waiting {
		out.Waiting = append(out.Waiting, a.work(w.Ref, w.Since))
	}
	return out
}

func (a *Agent) work(r dag.Ref[pod.Key], since time.Time) explain.Work {
	w := explain.Work{Pod: string(r.Key), Stage: r.ID.String(), Since: since}
	if v, ok := a.Store.Get(r.Key); ok {
		w.Pod = name(v)
	}
	return w
}

// ClassTable returns the policy with who works and who waits.
func (a *Agent) ClassTable() Policy {
	p := Policy{Schema: PolicySchema}
	for _, q := range a.Queues() {
		b := q.Row.Backoff
		row := ClassRow{
			Name: q.Class, Slots: q.Row.Slots, Order: string(q.Row.Order), MaxLost: q.Row.MaxLost,
			Running: len(q.Running), Waiting: len(q.Waiting), Lost: len(q.Lost),
		}
		if row.Order == "" {
			row.Order = string(dag.ByPriority)
		}
		if q.Row.Deadline > 0 {
			row.Deadline = q.Row.Deadline.String()
		}
		if b.Initial > 0 {
			row.Backoff = fmt.Sprintf("%s to %s", b.Initial, b.Max)
		}
		p.Classes = append(p.Classes, row)
		if row.Running+row.Waiting+row.Lost > 0 {
			p.Work = append(p.Work, a.queue(q))
		}
	}
	return p
}

func traceOf(v podstore.View, e journal.Episode) explain.Trace {
	w := explain.Window{From: e.Began, To: e.Ended}
	if e.Ended.IsZero() {
		w.To = time.Now()
	}
	return explain.Describe(explain.Trace{
		Pod: name(v), UID: string(v.Key), Kind: string(e.Kind), From: w.From, To: w.To,
		Outcome: e.Outcome, Spans: explain.Spans(e.Entries(), w),
	})
}
