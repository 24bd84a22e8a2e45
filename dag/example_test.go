package dag_test

import (
	"context"
	"fmt"

	"github.com/flowlet/flowlet/dag"
)

// A pot of tea: the water and the leaves at the same time, then the brewing.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	steps := make(chan struct{}, 3)
	engine := dag.New(dag.Policy{"hob": {Slots: 1}}, func(_ string, stage dag.ID, minutes int, err error) {
		fmt.Println(stage, minutes, err)
		steps <- struct{}{}
	}, dag.Options[string]{})

	tea := &dag.Graph[int]{}
	do := func(minutes int) func(context.Context) (int, error) {
		return func(context.Context) (int, error) { return minutes, nil }
	}
	water := tea.Add(dag.Node[int]{ID: dag.ID{Kind: "boil"}, Key: dag.Key{Do: "boil 1 l"}, Class: "hob", Run: do(4)})
	leaves := tea.Add(dag.Node[int]{ID: dag.ID{Kind: "leaves"}, Key: dag.Key{}}) // in the pot already: nothing to do
	tea.Add(dag.Node[int]{ID: dag.ID{Kind: "brew"}, Key: dag.Key{Do: "brew"}, Need: []dag.ID{water, leaves}, Run: do(3)})

	done := make(chan error)
	go func() { done <- engine.Run(ctx) }()
	for {
		memo, next := engine.Step("tea", tea)
		if memo[dag.ID{Kind: "brew"}].State == dag.Done {
			break
		}
		if next.IsZero() {
			<-steps // something ended: look again
		}
	}
	stop()
	fmt.Println("stopped:", <-done)

	// Output:
	// boil 4 <nil>
	// brew 3 <nil>
	// stopped: <nil>
}
