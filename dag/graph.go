package dag

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// ID names a stage within the graph of one key.
type ID struct {
	Kind string // one of a closed set: span name and metric label
	Of   string // the instance (a container, a volume); an attribute only, may be empty
}

// String returns kind[of], or the kind alone.
func (id ID) String() string {
	if id.Of == "" {
		return id.Kind
	}
	return id.Kind + "[" + id.Of + "]"
}

// Key is a task key: what there is to do in a stage and all that decides it.
// The zero Key means that there is nothing to do.
type Key struct {
	Do string // readable: "start attempt 3", "stop: liveness"
	In uint64 // hash of the inputs that decide it
}

// Hold is a reason, computed from facts, not to start yet. The zero Hold holds
// nothing. A zero Until with a Why holds until the facts change.
type Hold struct {
	Until time.Time
	Why   string
	// OnTime says that nothing is missing: the stage is only not due before
	// Until, and nobody is kept from anything by that. It decides nothing, and
	// is for those who explain.
	OnTime bool
}

// Node is one stage of a graph.
type Node[F any] struct {
	ID     ID
	Need   []ID   // done first; while one of them is not, this one waits
	After  []ID   // order only: not while one of them runs or could run now
	Key    Key    // zero: nothing to do
	Hold   Hold   // not before
	Owns   string // the object that Run changes; one in flight per object, across graphs too
	Atomic bool   // an effect: a new graph never cancels it, only its deadline does
	Class  string // the row of the policy that queues it
	// Share: stages of any key with the same Share are one run. A stage that
	// wants it while it is queued or in flight joins it, each may leave, and
	// the run is cancelled when the last one has left. Not with Owns.
	Share string
	// Run does the work. It must be idempotent and should return soon after
	// ctx ends. The facts learnt are delivered with an error too. It may be
	// nil in graphs that are only looked at.
	Run func(ctx context.Context) (F, error)
}

// Graph is the whole of what there is to know and do about one key, in an
// order in which every stage comes after those it names. The zero Graph is
// empty and ready to use.
type Graph[F any] struct {
	// Priority orders this graph's stages in the class queues; higher first.
	Priority int
	// Ends is how many ended runs of the key the facts behind this graph
	// include: one per deliver. 0 means that the builder does not count.
	Ends uint64

	nodes []Node[F]
	index map[ID]int
}

// Add appends a node and returns its ID. Need and After may name only stages
// that were added before, so a cycle cannot be written; Add panics on an
// unknown or a repeated ID, which is a mistake in the builder.
func (g *Graph[F]) Add(n Node[F]) ID {
	if _, ok := g.index[n.ID]; ok {
		panic(fmt.Sprintf("dag: stage %s added twice", n.ID))
	}
	for _, ids := range [2][]ID{n.Need, n.After} {
		for _, id := range ids {
			if _, ok := g.index[id]; !ok {
				panic(fmt.Sprintf("dag: stage %s names %s, which was not added before it", n.ID, id))
			}
		}
	}
	if n.Share != "" && n.Owns != "" {
		panic(fmt.Sprintf("dag: stage %s shares its run and owns an object", n.ID))
	}
	if g.index == nil {
		g.index = make(map[ID]int)
	}
	g.index[n.ID] = len(g.nodes)
	g.nodes = append(g.nodes, n)
	return n.ID
}

// Grow makes room for n stages, where their number is about known.
func (g *Graph[F]) Grow(n int) {
	g.nodes = slices.Grow(g.nodes, n)
	if g.index == nil {
		g.index = make(map[ID]int, n)
	}
}

// Nodes returns the stages in the order they were added. The caller must not
// change them.
func (g *Graph[F]) Nodes() []Node[F] { return g.nodes }

// Node returns the stage with that ID.
func (g *Graph[F]) Node(id ID) (Node[F], bool) {
	i, ok := g.index[id]
	if !ok {
		return Node[F]{}, false
	}
	return g.nodes[i], true
}
