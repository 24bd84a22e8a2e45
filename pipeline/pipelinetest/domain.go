// Package pipelinetest has doubles for tests of the pipeline and of what is
// built on it: a source that plays a script and a domain that records.
package pipelinetest

import (
	"slices"
	"sync"
	"time"

	"github.com/flowlet/flowlet/pipeline"
)

// Event is an event of a recording domain.
type Event = pipeline.Event[string, int]

// State is the state of a key of a recording domain.
type State struct {
	Value  int // the change of the newest event
	Events int // that changed it
}

// Step is one call of Domain.Step.
type Step struct {
	Key   string
	State State
	Cause uint64
	At    time.Time
}

// Domain is a pipeline.Domain with strings as keys and integers as changes. An
// event sets a key's value, and changes nothing when the value is the same. It
// records its steps. The zero Domain is ready to use; its fields must be set
// before the pipeline runs.
type Domain struct {
	// OnStep answers a step, nil: with the zero Next. Calls of it never overlap.
	OnStep func(k string, s State) pipeline.Next
	// PriorityOf gives priorities, nil: 0 for all.
	PriorityOf func(k string, s State) int

	mu     sync.Mutex
	steps  []Step
	topics map[string]int
}

var _ pipeline.Domain[string, int, State] = (*Domain)(nil)

// Fold sets the value.
func (d *Domain) Fold(prev State, ev Event) (State, bool) {
	if prev.Events > 0 && prev.Value == ev.Change {
		return prev, false
	}
	return State{Value: ev.Change, Events: prev.Events + 1}, true
}

// Topic sets the value of the topic.
func (d *Domain) Topic(ev Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.topics == nil {
		d.topics = make(map[string]int)
	}
	d.topics[ev.Topic] = ev.Change
}

// Priority asks PriorityOf.
func (d *Domain) Priority(k string, s State) int {
	if d.PriorityOf == nil {
		return 0
	}
	return d.PriorityOf(k, s)
}

// Step records the call and asks OnStep.
func (d *Domain) Step(k string, s State, cause uint64) pipeline.Next {
	d.mu.Lock()
	d.steps = append(d.steps, Step{Key: k, State: s, Cause: cause, At: time.Now()})
	d.mu.Unlock()
	if d.OnStep == nil {
		return pipeline.Next{}
	}
	return d.OnStep(k, s)
}

// Value returns the newest value of a topic.
func (d *Domain) Value(topic string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.topics[topic]
}

// Steps returns the steps so far.
func (d *Domain) Steps() []Step {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.steps)
}

// StepsOf returns the steps of one key so far.
func (d *Domain) StepsOf(k string) []Step {
	return slices.DeleteFunc(d.Steps(), func(s Step) bool { return s.Key != k })
}
