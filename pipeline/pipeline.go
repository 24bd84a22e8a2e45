// Package pipeline is flowlet's fan-in: every source of facts emits events,
// events are folded at once into the state of their key, and one loop takes
// the keys that changed, highest priority first, and steps them.
//
// It is level-triggered: what counts is the newest state. Nothing is dropped,
// nothing queues twice, and memory is bounded by the number of keys.
package pipeline

import (
	"context"
	"time"
)

// Event is a change of facts about a key or a topic.
type Event[K comparable, C any] struct {
	Key    K
	Topic  string // not empty: the event is about a topic, Key is unused
	Change C
	Source string    // name of the source
	Seen   time.Time // when the source saw it
	Cause  uint64    // runs on through decision and effect; 0: the pipeline gives it one
}

// Source is something outside that knows about keys.
type Source[K comparable, C any] interface {
	// Name is unique among the sources of a pipeline.
	Name() string
	// Run emits all that the source knows, then an event with the topic
	// Synced(Name()), then changes, until ctx ends. It returns only when all
	// that it started has ended. When it returns before that, it is run again
	// with back-off. emit never blocks and may be called concurrently.
	Run(ctx context.Context, emit func(Event[K, C])) error
}

// Synced is the topic that tells that a source has emitted all it knows once.
func Synced(source string) string { return "synced/" + source }

// Domain gives events their meaning.
type Domain[K comparable, C, S any] interface {
	// Fold returns the state of ev.Key after ev. It is pure and quick; it may
	// return prev itself, and the key is then not stepped.
	Fold(prev S, ev Event[K, C]) (next S, changed bool)
	// Topic folds an event about a topic into what keys share. One at a time.
	Topic(ev Event[K, C])
	// Priority orders keys that are to be stepped; higher first.
	Priority(k K, s S) int
	// Step looks at a key. It is short, never blocks, and runs once at a
	// time. cause is that of the newest event that was folded into s.
	Step(k K, s S, cause uint64) Next
}

// Next says when a key is looked at again.
type Next struct {
	Wake   time.Time // step again at that time; zero: only when something changes
	Reads  []string  // topics that the step read: a change of one makes the key dirty
	Forget bool      // drop the state of the key, unless it changed since
}
