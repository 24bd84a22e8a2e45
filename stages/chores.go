package stages

import (
	"time"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/stages/graph"
	"github.com/flowlet/flowlet/stages/node"
)

// Ask asks for a chore of the node; why says in a few words who does. It never
// blocks, and may be called from wherever the step loop calls.
func (d *Domain) Ask(chore, why string) {
	now := time.Now()
	d.events.Emit(Event{Key: pod.ChoreKey(chore), Change: pod.Due{At: now, Why: why}, Source: "store", Seen: now})
}

// stepChore looks at one chore. One that this agent does not have is dropped.
func (d *Domain) stepChore(k pod.Key, s *pod.State) pipeline.Next {
	if _, ok := d.chores[k]; !ok {
		return pipeline.Next{Forget: true}
	}
	w := d.look()
	memo, wake := d.engine.Step(k, d.choreGraph(time.Now(), s, w))
	d.Store.PutChore(podstore.View{Key: k, State: s, Memo: memo})
	return pipeline.Next{Wake: wake, Reads: w.topics}
}

func (d *Domain) choreGraph(now time.Time, s *pod.State, w *world) *graph.Graph {
	g := &graph.Graph{Ends: s.Ends}
	if c, ok := d.chores[pod.ChoreKey(s.Identity.Name)]; ok {
		for _, n := range c.Stages(node.In{Now: now, Chore: s.Chore, World: w}) {
			if n.Class == "" {
				n.Class = n.ID.Kind
			}
			g.Add(n)
		}
	}
	return g
}

// AllSynced reports whether every source of this agent has told all it knows;
// if not, it names one that has not.
func (w *world) AllSynced() (ok bool, missing string) {
	for _, source := range append([]string{w.d.Config.Graph.RuntimeSource}, w.d.Sources...) {
		if source != "" && !w.Synced(source) {
			return false, source
		}
	}
	return true, ""
}

var _ node.World = (*world)(nil)
