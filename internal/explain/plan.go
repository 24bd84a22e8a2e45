package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flowlet/flowlet/dag"
)

// PlanSchema names the JSON form of Plan.
const PlanSchema = "flowlet.dev/plan/v1"

// Plan is what a graph would make happen, without doing it.
type Plan struct {
	Schema string    `json:"schema"`
	At     time.Time `json:"at"`
	Start  []Stage   `json:"start"`         // would go to their class queues now
	Cancel []Stage   `json:"cancel"`        // runs and waits that would be ended
	Later  []Stage   `json:"later"`         // have something to do and wait, are held or in back-off
	Run    []Stage   `json:"running"`       // go on as they are
	Same   int       `json:"unchanged"`     // stages with nothing to do
	Next   time.Time `json:"next,omitzero"` // when to look again without new facts
}

// PlanOf decides about a graph and tells the outcome.
func PlanOf[F any](now time.Time, m dag.Memo, g *dag.Graph[F]) Plan {
	out, start, cancel, next := dag.Decide(now, m, g)
	p := Plan{Schema: PlanSchema, At: now, Next: next, Start: []Stage{}, Cancel: []Stage{}, Later: []Stage{}, Run: []Stage{}}
	before := FromGraph(g, m)
	ends := map[string]bool{}
	for _, id := range cancel {
		ends[id.String()] = true
		i := slices.IndexFunc(before, func(s Stage) bool { return s.ID == id.String() })
		if i >= 0 {
			s := before[i]
			s.Do = m[id].Key.Do // what runs, not what the graph now wants
			p.Cancel = append(p.Cancel, s)
		}
	}
	for _, s := range FromGraph(g, out) {
		switch {
		case slices.ContainsFunc(start, func(id dag.ID) bool { return id.String() == s.ID }):
			p.Start = append(p.Start, s)
		case s.is(dag.Done):
			p.Same++
		case ends[s.ID]:
			// told above; its next task waits for the end of the run
		case s.is(dag.Running), s.is(dag.Lost), s.is(dag.Queued):
			p.Run = append(p.Run, s)
		default:
			p.Later = append(p.Later, s)
		}
	}
	return p
}

// Text renders the plan.
func (p Plan) Text() string {
	var b strings.Builder
	lasting := func(s Stage) string { return s.State + " for " + ago(p.At, s.Since) }
	p.section(&b, "Would start now", p.Start, nil)
	p.section(&b, "Would be cancelled", p.Cancel, lasting)
	p.section(&b, "Goes on", p.Run, lasting)
	p.section(&b, "Later", p.Later, p.waits)
	if b.Len() == 0 {
		b.WriteString("Nothing to do.\n")
	}
	if p.Same > 0 {
		fmt.Fprintf(&b, "%d stages have nothing to do.\n", p.Same)
	}
	if !p.Next.IsZero() {
		fmt.Fprintf(&b, "Looked at again in %s without new facts.\n", ago(p.Next, p.At))
	}
	return b.String()
}

// section lists stages with their tasks and, below, what more tells of each.
func (p Plan) section(b *strings.Builder, title string, stages []Stage, more func(Stage) string) {
	if len(stages) == 0 {
		return
	}
	fmt.Fprintf(b, "%s (%d)\n", title, len(stages))
	for _, s := range stages {
		b.WriteString(strings.TrimRight(clip("  "+pad(s.ID, 24)+" "+s.Do, width), " ") + "\n")
		if more != nil {
			indent(b, 6, more(s))
		}
	}
	b.WriteString("\n")
}

func (p Plan) waits(s Stage) string {
	switch {
	case s.is(dag.Held):
		return "held: " + s.Why
	case s.is(dag.Failed) && s.Until.IsZero():
		return "failed for good: " + s.Error
	case s.is(dag.Failed):
		return "again in " + short(s.Until.Sub(p.At)) + ": " + s.Error
	case s.Why != "":
		return "after the change of " + s.Why
	default:
		return "after " + few(s.On, 3)
	}
}
