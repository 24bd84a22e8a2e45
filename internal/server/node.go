package server

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/podstore"
)

// Node is what the agent says about itself and its runtime.
type Node struct {
	Schema  string        `json:"schema"` // flowlet.dev/node/v1
	Name    string        `json:"name"`
	Version string        `json:"version"`
	Started time.Time     `json:"started"`
	Runtime RuntimeHealth `json:"runtime"`
	Checks  []Check       `json:"checks"`
	Chores  []Chore       `json:"chores"`
	Room    Room          `json:"room"`
	Pods    int           `json:"pods"`
	Left    []string      `json:"leftAlone,omitempty"` // pods of sources that are not configured
}

// RuntimeHealth is how the runtime fares.
type RuntimeHealth struct {
	Endpoint     string    `json:"endpoint"`
	Name         string    `json:"name"`
	Version      string    `json:"version,omitempty"`
	Ready        bool      `json:"ready"`
	NetworkReady bool      `json:"networkReady"`
	Message      string    `json:"message,omitempty"`
	Since        time.Time `json:"since,omitzero"`
	Events       bool      `json:"events"` // their stream is open
	EventsSince  time.Time `json:"eventsSince,omitzero"`
	EventsOff    string    `json:"eventsOff,omitempty"` // why it is not
	Answered     time.Time `json:"answered,omitzero"`   // its last answer about itself
	Listed       time.Time `json:"listed,omitzero"`     // begin of the last list that succeeded
}

// Room is what the machine has left, as the chore node/eviction measured it.
type Room struct {
	At        time.Time  `json:"at,omitzero"` // zero: not measured
	Amounts   []Amount   `json:"amounts,omitempty"`
	Pressures []Pressure `json:"pressures,omitempty"` // MemoryPressure and its like
	Did       string     `json:"did,omitempty"`       // about the newest of them
}

// Amount is how much there is of something, in units, and how much is left.
type Amount struct {
	Signal    string `json:"signal"` // memory.available and its like
	Available int64  `json:"available"`
	Capacity  int64  `json:"capacity"`
}

// Pressure is something that the node runs short of, or did not long ago.
type Pressure struct {
	Type  string    `json:"type"`
	Since time.Time `json:"since"`
}

// Check is one line of /healthz?verbose.
type Check struct {
	Name  string    `json:"name"`
	Error string    `json:"error,omitempty"` // empty: fine
	Since time.Time `json:"since,omitzero"`  // of the error, where it is known
}

// Chore is work of the node that belongs to no single pod.
type Chore struct {
	Name   string    `json:"name"`             // as `why` and its like take it
	Asked  time.Time `json:"asked"`            // when it was last to be done
	Why    string    `json:"why"`              // and why
	Ended  time.Time `json:"ended,omitzero"`   // when a stage of it ended last
	Doing  []string  `json:"doing,omitempty"`  // stages with something to do
	Errors []string  `json:"errors,omitempty"` // of stages that failed and are tried again
}

// shownErrors is how many errors of a chore are named.
const shownErrors = 8

func choreOf(v podstore.View) Chore {
	failed := 0
	s := v.State.Chore
	c := Chore{Name: string(v.Key), Asked: s.At, Why: s.Why, Ended: s.Ended}
	for _, id := range slices.SortedFunc(maps.Keys(v.Memo), func(a, b dag.ID) int { return cmp.Compare(a.String(), b.String()) }) {
		switch e := v.Memo[id]; {
		case e.State == dag.Failed:
			if failed++; failed <= shownErrors {
				c.Errors = append(c.Errors, fmt.Sprintf("%s: %v", id, e.Err))
			}
		case e.State != dag.Done && e.Key != (dag.Key{}):
			c.Doing = append(c.Doing, id.String())
		}
	}
	if failed > shownErrors {
		c.Errors = append(c.Errors, fmt.Sprintf("and %d more", failed-shownErrors))
	}
	return c
}

// NodeSchema names the JSON form of Node.
const NodeSchema = "flowlet.dev/node/v1"

// NodeInfo returns what the agent says about itself, with its chores and pods.
func (a *Agent) NodeInfo() Node {
	n := a.Node()
	for _, v := range a.Store.Chores() {
		n.Chores = append(n.Chores, choreOf(v))
	}
	for _, v := range a.Store.All() {
		if remembered(v) {
			continue
		}
		n.Pods++
		if a.leftAlone(v) {
			n.Left = append(n.Left, name(v))
		}
	}
	return n
}

// leftAlone reports whether the pod was found, and belongs to nobody here.
func (a *Agent) leftAlone(v podstore.View) bool {
	return v.State.Spec == nil && v.State.Removal == nil && !slices.Contains(a.Sources, v.State.Source())
}

// remembered reports whether there is nothing of the pod but its state file:
// it is wanted by nobody yet, and not here.
func remembered(v podstore.View) bool {
	return v.State.Spec == nil && v.State.Removal == nil && !v.State.HasRemains()
}
