package graph_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/graph"
)

// pruned is what becomes of stage prune with a running container and three
// attempts before it.
func pruned(c *graph.Config, changes ...pod.Change) dag.Entry {
	facts := []pod.Change{
		admitted, sandbox(true), container("c", 0, exited(1)), container("c", 1, exited(1)), container("c", 2, exited(1)), container("c", 3, nil),
	}
	g := graph.Build(graph.In{Now: now, State: fold(aPod(), append(facts, changes...)...), World: world{}, Config: c}, nil)
	memo, _, _, _ := dag.Decide(now, nil, g)
	return memo[dag.ID{Kind: graph.KindPrune}]
}

func TestHistoryOfAContainer(t *testing.T) {
	for kept, want := range map[int]string{-1: "", 0: "remove 3 dead containers", 1: "remove 2 dead containers", 3: ""} {
		c := config()
		c.Kept = kept
		require.Contains(t, pruned(c).Key.Do, want, kept)
		require.Equal(t, want == "", pruned(c).State == dag.Done, kept)
	}
}

func TestYoungDeadContainersStay(t *testing.T) {
	c := config()
	c.KeptFor = 10 * time.Minute
	e := pruned(c)
	require.Equal(t, dag.Held, e.State)
	require.Equal(t, "they are kept for 10m0s", e.Why)
	require.Equal(t, now.Add(9*time.Minute), e.Until)
	c.KeptFor = time.Minute
	require.Equal(t, dag.Queued, pruned(c).State)
}

func TestContainersWhoseRoomTheNodeWantsGo(t *testing.T) {
	c := config()
	c.Kept, c.KeptFor = -1, time.Hour
	require.Contains(t, pruned(c, pod.Unkept{IDs: []string{"c-2", "c-3", "other"}}).Key.Do, "remove 1 dead containers", "what runs stays")
}
