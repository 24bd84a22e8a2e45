package dag

import (
	"cmp"
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

	Joined   []Ref[K] // the other stages that share it
	Task     Key
	Since    time.Time // when it started, or was lost
	Deadline time.Time // zero: none
}

// Waiter is a stage that waits for a slot.
type Waiter[K comparable] struct {
	Ref[K]

	Joined   []Ref[K] // the other stages that share its run
	Task     Key
	Since    time.Time
	Priority int     // the highest of all that share it
	Position int     // in its queue, from 1
	Object   string  // not empty: it is passed over while Owner has this object, or this Share
	Owner    *Ref[K] // of Object
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
		lead := r.lead()
		w := Waiter[K]{
			Ref: lead.ref(), Joined: r.joined(), Task: lead.node.Key,
			Since: lead.since, Priority: r.priority(), Position: i + 1,
		}
		if owner := e.blocker(q, r); owner != nil {
			ref := owner.lead().ref()
			w.Object, w.Owner = cmp.Or(lead.node.Owns, r.share), &ref
		}
		v.Waiting = append(v.Waiting, w)
	}
	return v
}

func (s *seat[K, F]) ref() Ref[K] { return Ref[K]{s.flow.key, s.node.ID} }

// joined names all stages of a run but the first.
func (r *run[K, F]) joined() []Ref[K] {
	var refs []Ref[K]
	for _, s := range r.seats[1:] {
		refs = append(refs, s.ref())
	}
	return refs
}

func (r *run[K, F]) inFlight() InFlight[K] {
	lead := r.lead()
	return InFlight[K]{Ref: lead.ref(), Joined: r.joined(), Task: lead.node.Key, Since: r.since, Deadline: r.deadline}
}
