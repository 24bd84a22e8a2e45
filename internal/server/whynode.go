package server

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/flowlet/flowlet/internal/explain"
)

// NodeReportSchema names the JSON form of NodeReport.
const NodeReportSchema = "flowlet.dev/why-node/v1"

// NodeReport says what keeps pods of the node from getting further that is
// none of their own.
type NodeReport struct {
	Schema   string     `json:"schema"`
	Node     string     `json:"node"`
	At       time.Time  `json:"at"`
	Blocking []NodeWant `json:"blocking"`
}

// NodeWant is one thing that the node lacks.
type NodeWant struct {
	What  string         `json:"what"`            // name of a check, of a pressure, or of a class
	Says  string         `json:"says"`            // what is wrong with it
	Since time.Time      `json:"since,omitzero"`  // unknown when zero
	Queue *explain.Queue `json:"queue,omitempty"` // of a class
}

func (a *Agent) whyNode(now time.Time) NodeReport {
	n := a.Node()
	r := NodeReport{Schema: NodeReportSchema, Node: n.Name, At: now, Blocking: []NodeWant{}}
	for _, c := range n.Checks {
		if c.Error != "" {
			r.Blocking = append(r.Blocking, NodeWant{What: c.Name, Says: c.Error, Since: c.Since})
		}
	}
	for _, p := range n.Room.Pressures {
		r.Blocking = append(r.Blocking, NodeWant{
			What: p.Type, Since: p.Since, Says: cmp.Or(n.Room.Did, "the node ran short of it and has enough again; the condition stays for evictionPressureTransitionPeriod"),
		})
	}
	for _, dq := range a.Queues() {
		q := a.queue(dq)
		switch {
		case q.Stopped:
			r.Blocking = append(r.Blocking, NodeWant{What: "class " + className(q.Class), Queue: &q, Says: fmt.Sprintf(
				"%d calls did not return after their deadline, so nothing more is started; %d stages wait", len(q.Lost), len(q.Waiting))})
		case len(q.Waiting) > 0:
			r.Blocking = append(r.Blocking, NodeWant{What: "class " + className(q.Class), Queue: &q, Since: q.Waiting[0].Since, Says: fmt.Sprintf(
				"%d of %d slots are taken; %d stages wait", len(q.Running), q.Slots, len(q.Waiting))})
		}
	}
	return r
}

func className(c string) string { return cmp.Or(c, "(others)") }

// shownWork is how many stages of a queue are named.
const shownWork = 4

// Text renders the report.
func (r NodeReport) Text() string {
	if len(r.Blocking) == 0 {
		return "node " + r.Node + "\n\nNothing of the node is in the way of its pods.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "node %s\n", r.Node)
	for _, w := range r.Blocking {
		fmt.Fprintf(&b, "\n%s", w.What)
		if !w.Since.IsZero() {
			fmt.Fprintf(&b, "  for %s", duration.HumanDuration(r.At.Sub(w.Since)))
		}
		fmt.Fprintf(&b, "\n  %s\n", strings.ReplaceAll(strings.TrimSpace(w.Says), "\n", "\n  "))
		if w.Queue != nil {
			r.work(&b, "lost", w.Queue.Lost)
			r.work(&b, "running", w.Queue.Running)
			r.work(&b, "waiting", w.Queue.Waiting)
		}
	}
	return b.String()
}

func (r NodeReport) work(b *strings.Builder, state string, list []explain.Work) {
	for i, w := range list {
		if i == shownWork {
			fmt.Fprintf(b, "  and %d more %s\n", len(list)-shownWork, state)
			return
		}
		fmt.Fprintf(b, "  %s: %s of %s (%s)\n", state, w.Stage, w.Pod, duration.HumanDuration(r.At.Sub(w.Since)))
	}
}
