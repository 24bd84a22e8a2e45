package dag

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Decide says what becomes of each stage of one key. From the time, the memo
// of what happened so far and the newest graph it returns the memo that holds
// from now on, the stages to put into their class queues, the runs to end (a
// queued one leaves its queue, a running one loses its context), and the time
// at which the outcome may be another without any new fact (zero: never).
//
// Decide is pure and changes neither m nor g. out is m itself when nothing
// changed, so both are to be treated as read-only. start and cancel are in
// graph order; cancel then has, by ID, the stages that the graph lacks. A
// queued stage whose key changed is in both: cancel comes first.
func Decide[F any](now time.Time, m Memo, g *Graph[F]) (out Memo, start, cancel []ID, next time.Time) {
	d := decide(now, m, g, unfolded{})
	return d.out, d.start, d.cancel, d.next
}

// decision is a Decide in progress.
type decision[F any] struct {
	now    time.Time
	before Memo
	out    Memo // before itself until the first change
	owned  []ownership
	again  bool // look again at once where facts may be missing

	start, cancel, changed []ID
	next                   time.Time
}

// ownership tells that a stage has an object, and how: Running, its run is in
// flight (or lost); Queued, it is about to be; Done, it has ended and its facts
// may be missing from the graph.
type ownership struct {
	object string
	id     ID
	state  State
}

// unfolded are runs whose facts a graph may lack.
type unfolded struct {
	runs  []ownership
	again bool // nothing else will ask for the next look
}

// decide is Decide. ended lists the runs that ended so recently that the graph
// may have been built without their facts: what the graph says about their
// objects, and what needs them, is put off to the next step.
func decide[F any](now time.Time, m Memo, g *Graph[F], ended unfolded) *decision[F] {
	d := &decision[F]{now: now, before: m, out: m, owned: append(inFlight(m), ended.runs...), again: ended.again}
	known := 0
	for i := range g.nodes {
		n := &g.nodes[i]
		e, ok := m[n.ID]
		if ok {
			known++
		}
		d.settle(n.ID, e, ok, d.becomes(n, e))
	}
	if known < len(m) {
		d.leave(g)
	}
	return d
}

// inFlight lists the objects of the runs in flight, by ID.
func inFlight(m Memo) []ownership {
	var owned []ownership
	for id, e := range m {
		if e.InFlight() && e.Owns != "" {
			owned = append(owned, ownership{e.Owns, id, Running})
		}
	}
	slices.SortFunc(owned, func(a, b ownership) int { return compareID(a.id, b.id) })
	return owned
}

// becomes returns the entry that follows e, but for its Since.
func (d *decision[F]) becomes(n *Node[F], e Entry) Entry {
	same := e.Key == n.Key
	switch {
	case e.State == Lost:
		return e
	case e.State == Running:
		if !same && !e.Atomic {
			d.cancel = append(d.cancel, n.ID)
		}
		return e
	case n.Key == Key{}:
		return d.nothingToDo(n)
	case same && e.State == Done:
		return e
	case same && e.State == Failed && e.Until.IsZero():
		return e
	case same && e.State == Failed && d.now.Before(e.Until):
		d.lookAgain(e.Until)
		return e
	}
	return d.candidate(n, e)
}

// nothingToDo is done, unless the stage's object is being changed: then
// nobody knows yet whether there will be something to do.
func (d *decision[F]) nothingToDo(n *Node[F]) Entry {
	to := entryOf(n)
	if o, ok := d.owner(n.Owns, func(o ownership) bool { return o.id != n.ID && o.state != Queued }); ok {
		return waitingForObject(to, o)
	}
	to.State = Done
	return to
}

// candidate has something to do and is neither done, running nor in back-off:
// it is queued unless something keeps it waiting. A queued stage passes
// through here at every step too.
func (d *decision[F]) candidate(n *Node[F], e Entry) Entry {
	to := entryOf(n)
	if e.Key == n.Key {
		to.Attempt, to.Err = e.Attempt, e.Err
	}
	if to.On = d.keep(n.Need, d.notDone); to.On != nil {
		return to
	}
	if to.On = d.keep(n.After, d.runsOrCould); to.On != nil {
		return to
	}
	if h := n.Hold; h.Why != "" && (h.Until.IsZero() || d.now.Before(h.Until)) {
		d.lookAgain(h.Until)
		to.State, to.Why, to.Until, to.OnTime = Held, h.Why, h.Until, h.OnTime
		return to
	}
	if o, ok := d.owner(n.Owns, func(ownership) bool { return true }); ok {
		return waitingForObject(to, o)
	}
	to.State = Queued
	return to
}

func entryOf[F any](n *Node[F]) Entry {
	return Entry{Key: n.Key, Owns: n.Owns, Class: n.Class, Atomic: n.Atomic}
}

func waitingForObject(to Entry, o ownership) Entry {
	to.State, to.On, to.Why = Waiting, []ID{o.id}, o.object
	return to
}

// notDone: a stage whose facts may be missing from the graph is as good as
// running for those that need it.
func (d *decision[F]) notDone(id ID) bool {
	return d.out[id].State != Done || d.isUnfolded(id)
}

func (d *decision[F]) runsOrCould(id ID) bool {
	s := d.out[id].State
	return s == Running || s == Queued
}

// isUnfolded reports whether a run of the stage has ended so recently that its
// facts may be missing from the graph, and then asks for another look.
func (d *decision[F]) isUnfolded(id ID) bool {
	for _, o := range d.owned {
		if o.state == Done && o.id == id {
			d.lookAgainNow()
			return true
		}
	}
	return false
}

// keep returns those of ids that are blocking, nil if none is. They come
// earlier in the graph, so they are decided already.
func (d *decision[F]) keep(ids []ID, blocking func(ID) bool) []ID {
	var on []ID
	for _, id := range ids {
		if blocking(id) {
			on = append(on, id)
		}
	}
	return on
}

// owner says which stage has the object, among those that count.
func (d *decision[F]) owner(object string, counts func(ownership) bool) (ownership, bool) {
	if object == "" {
		return ownership{}, false
	}
	for _, o := range d.owned {
		if o.object == object && counts(o) {
			if o.state == Done {
				d.lookAgainNow()
			}
			return o, true
		}
	}
	return ownership{}, false
}

// lookAgainNow asks for a look with newer facts, unless they ask by themselves.
func (d *decision[F]) lookAgainNow() {
	if d.again {
		d.lookAgain(d.now)
	}
}

// lookAgain lowers the time of the next look to t, if t is a time.
func (d *decision[F]) lookAgain(t time.Time) {
	if !t.IsZero() && (d.next.IsZero() || t.Before(d.next)) {
		d.next = t
	}
}

// settle notes that a stage's entry e becomes to.
func (d *decision[F]) settle(id ID, e Entry, known bool, to Entry) {
	if to.State == Queued && to.Owns != "" {
		d.owned = append(d.owned, ownership{to.Owns, id, Queued})
	}
	if known && unchanged(e, to) {
		return
	}
	if e.State == Queued {
		d.cancel = append(d.cancel, id)
	}
	if to.State == Queued {
		d.start = append(d.start, id)
	}
	to.Since = d.now
	d.writable()[id] = to
	d.changed = append(d.changed, id)
}

// leave decides for the stages that the graph lacks: what is in flight stays
// until it ends, the rest is forgotten.
func (d *decision[F]) leave(g *Graph[F]) {
	var gone []ID
	for id := range d.before {
		if _, ok := g.index[id]; !ok {
			gone = append(gone, id)
		}
	}
	slices.SortFunc(gone, compareID)
	for _, id := range gone {
		e := d.before[id]
		if e.State == Queued || e.State == Running && !e.Atomic {
			d.cancel = append(d.cancel, id)
		}
		if !e.InFlight() {
			delete(d.writable(), id)
			d.changed = append(d.changed, id)
		}
	}
}

// writable returns out as a map of our own.
func (d *decision[F]) writable() Memo {
	if d.changed == nil {
		d.out = maps.Clone(d.before)
		if d.out == nil {
			d.out = Memo{}
		}
	}
	return d.out
}

// unchanged compares all but Since. An entry of the same key takes its Err
// over, so that Err can only have come or gone (and need not be comparable).
func unchanged(a, b Entry) bool {
	return a.State == b.State && a.Key == b.Key && a.Attempt == b.Attempt &&
		(a.Err == nil) == (b.Err == nil) && a.Until.Equal(b.Until) && a.Why == b.Why &&
		a.Owns == b.Owns && a.Class == b.Class && a.Atomic == b.Atomic && slices.Equal(a.On, b.On)
}

func compareID(a, b ID) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Of, b.Of))
}
