package dag_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/dag"
)

func clone(m dag.Memo) dag.Memo { return maps.Clone(m) }

// settled returns a graph of n stages in a chain and the memo in which all are done.
func settled(n int) (dag.Memo, *dag.Graph[int]) {
	g, m := &dag.Graph[int]{}, dag.Memo{}
	var need []dag.ID
	for i := range n {
		stage := dag.ID{Kind: "container", Of: string(rune('a' + i))}
		g.Add(node{ID: stage, Key: key("x"), Need: need, Owns: stage.Of})
		m[stage] = was(dag.Done, "x", owns(stage.Of))
		need = []dag.ID{stage}
	}
	return m, g
}

func TestDecideSettledAllocatesNearlyNothing(t *testing.T) {
	m, g := settled(15)
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { dag.Decide(now, m, g) }), 1.0)
}

func BenchmarkDecideSettled15(b *testing.B) {
	m, g := settled(15)
	for b.Loop() {
		dag.Decide(now, m, g)
	}
}
