// Package node holds the chores of the node: work that belongs to no single
// pod, such as rotating logs and removing what nobody wants. A chore is a small
// graph under a key of its own, on the same engine as pods: it has a memo,
// deadlines, back-off and class queues, and so `flowlet why node/NAME` and its
// like know of it.
package node

import (
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Stage is a node of a chore's graph. A Class that is empty is the stage's kind.
type Stage = dag.Node[pod.Facts]

// Chore is work of the node. Its methods must be quick and may be called
// concurrently.
type Chore interface {
	// Name is the end of the chore's key, "logs" of node/logs.
	Name() string
	// Every is the period after which it is done again by itself; 0: only when
	// it is asked for.
	Every() time.Duration
	// Stages returns the stages of the chore's graph, each after those that it
	// names. It is pure: what a stage of an earlier graph found out is in
	// In.Chore.Facts, and what pods share is asked of In.World.
	Stages(in In) []Stage
}

// In is all that a chore's graph depends on.
type In struct {
	Now   time.Time
	Chore *pod.Chore
	World World
}

// World is what chores share with pods. Reading it makes the chore look again
// when the answer changes.
type World interface {
	// AllSynced reports whether all sources of pods and the runtime have told
	// all they know; if not, it names one that has not.
	AllSynced() (ok bool, missing string)
}

// Turn returns the task key of what is done once each time the chore is asked
// for. While it is done, further asking makes one more turn.
func (in In) Turn(do string) dag.Key {
	if in.Chore.Asked == 0 {
		return dag.Key{}
	}
	return dag.Key{Do: do, In: in.Chore.Asked}
}

// AfterSync returns a hold until all is known that says what is wanted.
func (in In) AfterSync() dag.Hold {
	if ok, missing := in.World.AllSynced(); !ok {
		return dag.Hold{Why: "source " + missing + " has not told all it knows"}
	}
	return dag.Hold{}
}
