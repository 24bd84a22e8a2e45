package dag

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Options are the parts of an engine that may be left out.
type Options[K comparable] struct {
	Observer Observer[K] // several: Tee; nil observes nothing
	Seed     uint64      // of the jitter of back-offs
	Validate bool        // check the engine's own rules after every move and panic on a breach; for tests
}

// Engine carries decisions out: it keeps the memo of every key, queues stages
// by class, runs them, and remembers how they ended. All methods may be called
// concurrently, but the Steps of one key one after the other, each with a graph
// that was built after the Step before it returned. None but Run blocks.
//
// One mutex guards everything. A goroutine exists only for a run; deadlines
// are timers.
type Engine[K comparable, F any] struct {
	deliver  func(k K, id ID, facts F, err error)
	observer Observer[K]
	validate bool

	mu      sync.Mutex
	policy  Policy
	rng     *rand.Rand
	flows   map[K]*flow[K, F]
	queues  map[string]*queue[K, F] // by class name; only those with something in them
	owners  map[string]*run[K, F]   // by object: the run in flight that changes it
	arrival uint64                  // of the newest run
	ran     bool                    // Run was called
	spawn   func(*run[K, F])        // starts a goroutine; nil before Run and from its end on: stages stay queued
	live    int                     // goroutines that Run waits for: of runs in flight or delivering, not lost
	quiet   *sync.Cond              // live fell
}

// flow is what the engine keeps about one key.
type flow[K comparable, F any] struct {
	key    K
	memo   Memo
	shared bool               // memo was handed out: copy it before the next change
	seats  map[ID]*seat[K, F] // in runs that are queued, running or lost
	ended  []*seat[K, F]      // in runs that ended, until a step must have seen their facts
	ends   uint64             // how many runs ended, as the builder counts
}

// New returns an engine with nothing in it. deliver is its only way out: it is
// called once for each run that ended, after the memo moved, without the
// engine's lock and in the run's goroutine; it may call the engine, and should
// fold the facts before it returns. err is nil, what the stage returned, or a
// *PanicError; past the deadline it is also an ErrDeadline.
func New[K comparable, F any](policy Policy, deliver func(k K, id ID, facts F, err error), o Options[K]) *Engine[K, F] {
	e := &Engine[K, F]{
		deliver:  deliver,
		observer: o.Observer,
		validate: o.Validate,
		policy:   maps.Clone(policy),
		rng:      rand.New(rand.NewPCG(o.Seed, 0)),
		flows:    make(map[K]*flow[K, F]),
		queues:   make(map[string]*queue[K, F]),
		owners:   make(map[string]*run[K, F]),
	}
	if e.observer == nil {
		e.observer = NopObserver[K]{}
	}
	e.quiet = sync.NewCond(&e.mu)
	return e
}

// Step looks at a key: it decides, starts, cancels, and returns at once. The
// memo is a snapshot that the caller may keep but not change. The time, if not
// zero, is when to step again without new facts.
//
// A run's facts travel from deliver to the graph while the engine goes on. A
// step whose graph may lack the facts of a run that ended (see Graph.Ends) says
// nothing about the object that the run changed and starts nothing that needs
// its stage.
func (e *Engine[K, F]) Step(k K, g *Graph[F]) (Memo, time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	f := e.flow(k, g.Ends)
	d := decide(now, f.memo, g, f.unfolded(g.Ends))
	e.adopt(f, d)
	for _, id := range d.cancel {
		if again := e.dismiss(now, f.seats[id]); again {
			d.lookAgain(now)
		}
	}
	e.refresh(f, g)
	for _, id := range d.start {
		n, _ := g.Node(id)
		e.sit(now, &seat[K, F]{flow: f, node: n, priority: g.Priority, since: now})
	}
	for _, id := range d.start {
		e.dispatch(now, e.queue(f.memo[id].Class))
	}
	e.check()
	f.shared = true
	return f.memo, d.next
}

// Memo returns a snapshot of what is remembered of a key, nil if nothing is.
// The caller may keep but not change it.
func (e *Engine[K, F]) Memo(k K) Memo {
	e.mu.Lock()
	defer e.mu.Unlock()
	f, ok := e.flows[k]
	if !ok {
		return nil
	}
	f.shared = true
	return f.memo
}

// Forget drops what is remembered of a key, and what it has queued. It refuses
// and returns false while work of the key is in flight, lost, or just being
// delivered.
func (e *Engine[K, F]) Forget(k K) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	f, ok := e.flows[k]
	if !ok {
		return true
	}
	if f.busy() {
		return false
	}
	for _, id := range slices.SortedFunc(maps.Keys(f.memo), compareID) {
		if s := f.seats[id]; s != nil {
			e.leave(s)
		}
		e.observer.Moved(k, id, f.memo[id], Entry{})
	}
	delete(e.flows, k)
	e.check()
	return true
}

// flow returns what is kept about a key. Its count of ends goes on from where
// the builder's is: the key may have been forgotten in between.
func (e *Engine[K, F]) flow(k K, ends uint64) *flow[K, F] {
	f, ok := e.flows[k]
	if !ok {
		f = &flow[K, F]{key: k, seats: make(map[ID]*seat[K, F]), ends: ends}
		e.flows[k] = f
	}
	return f
}

// adopt makes the outcome of a decision the memo of a key.
func (e *Engine[K, F]) adopt(f *flow[K, F], d *decision[F]) {
	if len(d.changed) == 0 {
		return
	}
	f.memo, f.shared = d.out, false
	for _, id := range d.changed {
		e.observer.Moved(f.key, id, d.before[id], d.out[id])
	}
}

// move sets one entry between two steps.
func (e *Engine[K, F]) move(f *flow[K, F], id ID, to Entry) {
	if f.shared {
		f.memo, f.shared = maps.Clone(f.memo), false
	}
	from := f.memo[id]
	f.memo[id] = to
	e.observer.Moved(f.key, id, from, to)
}

// unfolded returns the ended runs whose facts a graph may not know. A builder
// that counts says itself whether it knows all of them, and the facts that it
// lacks will make it step again. For one that does not, those that were
// delivered before this step are known at the next one.
func (f *flow[K, F]) unfolded(ends uint64) (u unfolded) {
	if ends >= f.ends {
		f.ended = nil
	}
	for _, s := range f.ended {
		u.runs = append(u.runs, ownership{s.node.Owns, s.node.ID, Done})
	}
	if u.again = ends == 0; u.again {
		f.ended = slices.DeleteFunc(f.ended, func(s *seat[K, F]) bool { return s.delivered })
	}
	return u
}

// busy reports whether a run of the key is in flight, lost or being delivered.
func (f *flow[K, F]) busy() bool {
	for _, s := range f.seats {
		if s.run.at != queued {
			return true
		}
	}
	return slices.ContainsFunc(f.ended, func(s *seat[K, F]) bool { return !s.delivered })
}
