package dagtest

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/dag"
)

// Shape is what random graphs are made of.
type Shape struct {
	Kind    string   // of all stages; Of is their number
	Max     int      // stages
	Objects []string // that a stage may own; add "" for none
	Shares  []string // that a stage that owns nothing may have; add "" for none
	Classes []string
}

// Nodes draws the stages of a graph in an order in which they can be added,
// without a Key, a Hold and a Run.
func (s Shape) Nodes() *rapid.Generator[[]dag.Node[int]] {
	return rapid.Custom(func(rt *rapid.T) []dag.Node[int] {
		var nodes []dag.Node[int]
		for i := range rapid.IntRange(1, s.Max).Draw(rt, "stages") {
			n := dag.Node[int]{
				ID:     dag.ID{Kind: s.Kind, Of: fmt.Sprint(i)},
				Owns:   rapid.SampledFrom(s.Objects).Draw(rt, "owns"),
				Class:  rapid.SampledFrom(s.Classes).Draw(rt, "class"),
				Atomic: rapid.Bool().Draw(rt, "atomic"),
			}
			if share := rapid.SampledFrom(append([]string{""}, s.Shares...)).Draw(rt, "share"); share != "" && n.Owns == "" {
				n.Share = share + "@" + n.Class
			}
			for _, earlier := range nodes {
				switch rapid.IntRange(0, 5).Draw(rt, "edge") {
				case 0:
					n.Need = append(n.Need, earlier.ID)
				case 1:
					n.After = append(n.After, earlier.ID)
				}
			}
			nodes = append(nodes, n)
		}
		return nodes
	})
}

// Graph builds a graph of nodes after set has given each its Key, Hold and Run.
func Graph(nodes []dag.Node[int], set func(n *dag.Node[int])) *dag.Graph[int] {
	g := &dag.Graph[int]{}
	for _, n := range nodes {
		set(&n)
		g.Add(n)
	}
	return g
}
