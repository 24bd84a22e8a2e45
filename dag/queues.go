package dag

import (
	"maps"
	"slices"
	"time"
)

// Queue shows one class: its row and who is in it.
type Queue[K comparable] struct {
	Class   string
	Row     Class
	Running []InFlight[K] // the oldest first
	Lost    []InFlight[K] // past their deadline and not returned, the oldest first
	Stopped bool          // MaxLost runs are lost: nothing is started
	Waiting []Waiter[K]   // who is first is first
}

// Ref names a stage of a key.
type Ref[K comparable] struct {
	Key K
	ID  ID
}

// InFlight is a run that has begun and not returned.
type InFlight[K comparable] struct {
	Ref[K]

	Task     Key
	Since    time.Time // when it started, or was lost
	Deadline time.Time // zero: none
	Joined   []Ref[K]  // stages that share the run
}

// Waiter is a stage that waits for a slot.
type Waiter[K comparable] struct {
	Ref[K]

	Task     Key
	Since    time.Time
	Priority int
	Position int      // in its queue, from 1
	Object   string   // not empty: it is passed over while Owner has this object
	Owner    *Ref[K]  // of Object
	Joined   []Ref[K] // stages that share the run
}

// Queues returns what runs and waits in every class of the policy and every
// other class in use, by class name.
func (e *Engine[K, F]) Queues() []Queue[K] {
	e.mu.Lock()
	defer e.mu.Unlock()
	classes := slices.Collect(maps.Keys(e.policy))
	classes = slices.AppendSeq(classes, maps.Keys(e.queues))
	slices.Sort(classes)
	var all []Queue[K]
	for _, class := range slices.Compact(classes) {
		q, ok := e.queues[class]
		if !ok {
			q = &queue[K, F]{class: class, row: e.policy.row(class)}
		}
		all = append(all, e.view(q))
	}
	return all
}

func (e *Engine[K, F]) view(q *queue[K, F]) Queue[K] {
	v := Queue[K]{Class: q.class, Row: q.row, Stopped: q.stopped()}
	for _, r := range q.running {
		v.Running = append(v.Running, r.inFlight())
	}
	for _, r := range q.lost {
		v.Lost = append(v.Lost, r.inFlight())
	}
	for i, r := range q.waiting {
		w := Waiter[K]{Ref: r.ref(), Task: r.node.Key, Since: r.since, Priority: r.priority, Position: i + 1, Joined: r.refs()}
		if owner := e.owners[r.node.Owns]; owner != nil {
			ref := owner.ref()
			w.Object, w.Owner = r.node.Owns, &ref
		}
		v.Waiting = append(v.Waiting, w)
	}
	return v
}

func (r *run[K, F]) ref() Ref[K] { return Ref[K]{r.flow.key, r.node.ID} }

func (r *run[K, F]) inFlight() InFlight[K] {
	return InFlight[K]{Ref: r.ref(), Task: r.node.Key, Since: r.since, Deadline: r.deadline, Joined: r.refs()}
}

func (r *run[K, F]) refs() []Ref[K] {
	var refs []Ref[K]
	for _, j := range r.joined {
		refs = append(refs, j.ref())
	}
	return refs
}
