package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sourcegraph/conc"
)

// Options are the tunables of a pipeline. The zero value has the defaults.
type Options struct {
	// A source that returned is run again after RestartMin (0 means 1 s), then
	// each time after twice as long, at most RestartMax (0 means 1 min), and
	// after RestartMin again once a run lasted longer than RestartMax.
	RestartMin, RestartMax time.Duration
}

// Pipeline folds events into the states of keys and steps the keys that
// changed. All methods may be called concurrently; none but Run blocks.
type Pipeline[K comparable, C, S any] struct {
	domain Domain[K, C, S]
	opts   Options

	// poke wakes the step loop. One place is enough: it says "look again",
	// and one look sees everything that was marked before it.
	poke chan struct{}

	topics sync.Mutex // held around Domain.Topic; taken before mu

	mu       sync.Mutex
	slots    map[K]*slot[K, S]
	dirty    ordered[K, S]
	wakes    ordered[K, S]
	readers  readers[K, S]
	stepping bool              // a step is under way
	changed  map[string]uint64 // topics that changed since that step began, and why
	sources  []*source[K, C]
	syncedBy map[string]*source[K, C] // by the topic of Synced
	ran      bool
	counts   counts
}

// counts only grow.
type counts struct {
	folded, unchanged, coalesced, steps uint64
	births, turns, causes               uint64
}

// New returns a pipeline without sources and keys.
func New[K comparable, C, S any](domain Domain[K, C, S], o Options) *Pipeline[K, C, S] {
	return &Pipeline[K, C, S]{
		domain:   domain,
		opts:     o,
		poke:     make(chan struct{}, 1),
		slots:    make(map[K]*slot[K, S]),
		dirty:    newDirtySet[K, S](),
		wakes:    newWakeUps[K, S](),
		readers:  make(readers[K, S]),
		changed:  make(map[string]uint64),
		syncedBy: make(map[string]*source[K, C]),
	}
}

// Add adds a source. It panics after Run was called and when the name is
// taken: both are mistakes in the wiring.
func (p *Pipeline[K, C, S]) Add(src Source[K, C]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	topic := Synced(src.Name())
	if p.ran {
		panic(fmt.Sprintf("pipeline: source %q added after Run", src.Name()))
	}
	if p.syncedBy[topic] != nil {
		panic(fmt.Sprintf("pipeline: two sources are called %q", src.Name()))
	}
	s := &source[K, C]{Source: src}
	p.sources = append(p.sources, s)
	p.syncedBy[topic] = s
}

// Emit folds an event at once and marks what it changed for a step. Folding
// is done under a lock: Fold, Topic and Priority must not call the pipeline.
func (p *Pipeline[K, C, S]) Emit(ev Event[K, C]) {
	if ev.Topic != "" {
		p.emitTopic(ev)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(&ev)
	s, known := p.slots[ev.Key]
	var prev S
	if known {
		prev = s.state
	}
	next, changed := p.domain.Fold(prev, ev)
	if !changed {
		p.counts.unchanged++
		return
	}
	if !known {
		s = p.birth(ev.Key)
	}
	s.state, s.cause = next, ev.Cause
	p.mark(s)
}

// emitTopic folds first and marks the readers then: a step that begins in
// between has read the new value already and is only repeated.
func (p *Pipeline[K, C, S]) emitTopic(ev Event[K, C]) {
	p.topics.Lock()
	defer p.topics.Unlock()
	p.mu.Lock()
	p.count(&ev)
	p.mu.Unlock()

	p.domain.Topic(ev)

	p.mu.Lock()
	defer p.mu.Unlock()
	if src := p.syncedBy[ev.Topic]; src != nil {
		src.synced = true
	}
	if p.stepping {
		p.changed[ev.Topic] = ev.Cause
	}
	for _, s := range p.readers.of(ev.Topic) {
		s.cause = ev.Cause
		p.mark(s)
	}
}

// count counts an event and gives it a cause if it has none.
func (p *Pipeline[K, C, S]) count(ev *Event[K, C]) {
	p.counts.folded++
	if ev.Cause == 0 {
		p.counts.causes++
		ev.Cause = p.counts.causes
	}
}

// Dirty asks for a step of a key without a change. A key without a state has
// nothing to look at and is left alone.
func (p *Pipeline[K, C, S]) Dirty(k K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, ok := p.slots[k]; ok {
		p.mark(s)
	}
}

func (p *Pipeline[K, C, S]) birth(k K) *slot[K, S] {
	p.counts.births++
	s := &slot[K, S]{key: k, number: p.counts.births, dirtyAt: -1, wakeAt: -1}
	p.slots[k] = s
	return s
}

// mark puts a slot into the dirty set. One that is in keeps its turn and gets
// the priority of its newest state.
func (p *Pipeline[K, C, S]) mark(s *slot[K, S]) {
	if s.dirty() {
		p.counts.coalesced++
	} else {
		p.counts.turns++
		s.turn = p.counts.turns
	}
	s.priority = p.domain.Priority(s.key, s.state)
	p.dirty.add(s)
	select {
	case p.poke <- struct{}{}:
	default:
	}
}

// Run runs the sources and the steps, one at a time, until ctx ends, and
// returns nil when all have ended. It can be called once. What was emitted
// before is stepped now; what is emitted after is folded and not stepped.
//
// A panic of the domain is a panic of Run; one of a source is like any other
// early return.
func (p *Pipeline[K, C, S]) Run(ctx context.Context) error {
	p.mu.Lock()
	if p.ran {
		p.mu.Unlock()
		return errors.New("pipeline: run before")
	}
	p.ran = true
	p.mu.Unlock()

	var sources conc.WaitGroup
	for _, s := range p.sources {
		sources.Go(func() { p.keepRunning(ctx, s) })
	}
	p.loop(ctx)
	sources.Wait()
	return nil
}
