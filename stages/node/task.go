package node

import (
	"context"
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Task is a chore of one stage that does the same each time.
type Task struct {
	Called string
	Period time.Duration
	// Do is run by one goroutine at a time; it must end when ctx does.
	Do func(ctx context.Context) error
}

var _ Chore = Task{}

// Name implements Chore.
func (t Task) Name() string { return t.Called }

// Every implements Chore.
func (t Task) Every() time.Duration { return t.Period }

// Stages implements Chore.
func (t Task) Stages(in In) []Stage {
	return []Stage{{
		ID: dag.ID{Kind: t.Called}, Key: in.Turn("do"), Class: "chore", Owns: "node/" + t.Called,
		Run: func(ctx context.Context) (pod.Facts, error) { return nil, t.do(ctx) },
	}}
}

// do is tried again when it would have been done again anyway.
func (t Task) do(ctx context.Context) error {
	if err := t.Do(ctx); err != nil {
		return dag.RetryAfter(err, t.Period)
	}
	return nil
}
