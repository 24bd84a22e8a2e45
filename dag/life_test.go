package dag_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/dag/dagtest"
)

// life is a history as it happens. Its mutex is taken before the engine's,
// never after it.
type life struct {
	history

	engine   *dag.Engine[string, int]
	recorder *dagtest.Recorder[string]
	pokes    map[string]chan struct{}

	mu        sync.Mutex
	facts     map[string]*facts
	active    map[string]int // by object or Share: effects under way
	runs      int
	delivered map[delivered]int
	broken    string

	doubled atomic.Bool // the slots may be
}

// delivered is the end of a run for one of its stages.
type delivered struct {
	key   string
	stage dag.ID
	run   int
}

// facts are what decides the graph of a key.
type facts struct {
	shape   int
	version map[dag.ID]int
	idle    map[dag.ID]bool
	held    map[dag.ID]time.Time
	ends    uint64
}

func live(h history) *life {
	l := &life{
		history: h, recorder: &dagtest.Recorder[string]{}, pokes: map[string]chan struct{}{},
		facts: map[string]*facts{}, active: map[string]int{}, delivered: map[delivered]int{},
	}
	for k := range h.shapes {
		l.pokes[k] = make(chan struct{}, 1)
		l.facts[k] = &facts{version: map[dag.ID]int{}, idle: map[dag.ID]bool{}, held: map[dag.ID]time.Time{}}
	}
	l.recorder.Also = l.check
	l.engine = dag.New(propertyPolicy, l.deliver, dag.Options[string]{Observer: l.recorder, Validate: true})
	return l
}

func (l *life) breaks(format string, args ...any) {
	if l.broken == "" {
		l.broken = fmt.Sprintf(format, args...)
	}
}

func (l *life) poke(k string) {
	select {
	case l.pokes[k] <- struct{}{}:
	default:
	}
}

func (l *life) deliver(k string, stage dag.ID, run int, err error) {
	if p, ok := errors.AsType[*dag.PanicError](err); ok {
		run, _ = p.Value.(int) // there are no facts
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delivered[delivered{k, stage, run}]++
	l.facts[k].ends++
	l.poke(k)
}

// graph builds the newest graph of a key.
func (l *life) graph(k string) *dag.Graph[int] {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.facts[k]
	g := dagtest.Graph(l.shapes[k][f.shape], func(n *node) {
		if !f.idle[n.ID] {
			n.Key = dag.Key{Do: "work", In: uint64(f.version[n.ID] + 1)}
		}
		n.Hold = dag.Hold{Why: "a while", Until: f.held[n.ID]}
		if n.Hold.Until.IsZero() {
			n.Hold = dag.Hold{}
		}
		n.Run = l.work(k, *n)
	})
	if l.counts {
		g.Ends = f.ends
	}
	return g
}

// work returns the run of a stage: some script, chosen by all that is known
// about the run. It is told apart from all others by its facts.
func (l *life) work(k string, n node) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		l.mu.Lock()
		l.runs++
		run := l.runs
		object := n.Owns + n.Share // only one of them
		l.active[object]++
		if object != "" && l.active[object] > 1 {
			l.breaks("%d effects on %s at once", l.active[object], object)
		}
		l.mu.Unlock()
		defer func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.active[object]--
		}()
		script := dagtest.Script{}
		if attempt := l.engine.Memo(k)[n.ID].Attempt; attempt <= 4 { // at some time all is well
			script = l.scripts[pick(len(l.scripts), k, n.ID, n.Key.In, attempt)]
		}
		script.Facts = run
		if script.Panics != nil {
			script.Panics = run
		}
		return script.Run(ctx)
	}
}

func pick(n int, what ...any) int {
	h := fnv.New32a()
	fmt.Fprint(h, what...)
	return int(h.Sum32()) % n
}

// drive steps a key whenever something happened or the engine asked for it.
func (l *life) drive(ctx context.Context, k string) {
	for {
		_, next := l.engine.Step(k, l.graph(k))
		var wake <-chan time.Time
		if !next.IsZero() {
			wake = time.After(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return
		case <-l.pokes[k]:
		case <-wake:
		}
	}
}

// happen lets one act happen.
func (l *life) happen(a act) {
	l.mu.Lock()
	f := l.facts[a.Key]
	shape := l.shapes[a.Key][f.shape]
	stage := shape[a.Stage%len(shape)].ID
	switch a.What {
	case renew:
		f.version[stage]++
		f.idle[stage] = false
	case settle:
		f.idle[stage] = true
	case hold:
		f.held[stage] = time.Now().Add(2 * s)
	case turn:
		f.shape = 1 - f.shape
	default:
	}
	l.mu.Unlock()
	switch a.What {
	case forget:
		l.engine.Forget(a.Key)
	case grow:
		l.resize(1)
	case shrink:
		l.resize(0)
	default:
	}
	l.poke(a.Key)
}

// resize doubles the slots or takes that back. The check knows the higher
// limit a moment longer than the engine.
func (l *life) resize(double int) {
	policy := maps.Clone(propertyPolicy)
	for class, row := range policy {
		row.Slots <<= double
		policy[class] = row
	}
	if double > 0 {
		l.doubled.Store(true)
	}
	l.engine.SetPolicy(policy)
	if double == 0 {
		l.doubled.Store(false)
	}
}

// run lets the history happen and returns what was wrong.
func (l *life) run(t *testing.T) string {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- l.engine.Run(ctx) }()
	var drivers sync.WaitGroup
	for _, k := range slices.Sorted(maps.Keys(l.shapes)) {
		drivers.Go(func() { l.drive(ctx, k) })
	}
	for _, a := range l.acts {
		time.Sleep(a.After)
		l.happen(a)
	}
	time.Sleep(time.Hour)
	synctest.Wait()
	breach := cmp.Or(l.recorder.Breach(), l.unsettled())
	stop()
	drivers.Wait()
	if err := <-ended; err != nil {
		breach = cmp.Or(breach, err.Error())
	}
	return cmp.Or(breach, l.undelivered())
}
