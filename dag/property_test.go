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

	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/dag/dagtest"
)

// The property test lets a random history happen to random graphs of a few
// keys and checks, at every move and at the end, what must hold always.

var (
	errFlaky  = errors.New("flaky")
	errBroken = dag.Terminal(errors.New("broken"))
	errBusy   = dag.RetryAfter(errors.New("busy"), 333*time.Millisecond)
)

// act is one thing that happens in a history, some time after the one before.
type act struct {
	After time.Duration
	Key   string
	Stage int
	What  what
}

type what int

const (
	renew   what = iota // another task key
	settle              // nothing to do
	hold                // held for a while
	turn                // the other graph of the key
	forget              // try to forget the key
	grow                // twice the slots
	shrink              // half the slots
	nothing             // step without a reason
	lastWhat
)

// history is all that is random: it is drawn before anything happens.
type history struct {
	shapes  map[string][2][]node // per key: two graphs of other stages over the same objects
	scripts []dagtest.Script
	acts    []act
	stopAt  time.Duration // of the engine; 0: when all is over
}

func drawHistory(rt *rapid.T) history {
	h := history{shapes: map[string][2][]node{}}
	keys := []string{"k0", "k1", "k2"}
	for _, k := range keys {
		var shapes [2][]node
		for i, kind := range []string{"run", "end"} {
			shape := dagtest.Shape{Kind: kind, Max: 6, Objects: []string{"", "", k + "/own", "shared"}, Shares: []string{"", "pull"}, Classes: []string{"a", "b/x", "b/y"}}
			shapes[i] = shape.Nodes().Draw(rt, k+kind)
		}
		h.shapes[k] = shapes
	}
	h.scripts = rapid.SliceOfN(rapid.Custom(drawScript), 1, 10).Draw(rt, "scripts")
	h.acts = rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) act {
		return act{
			After: time.Duration(rapid.IntRange(0, 3000).Draw(rt, "after")) * time.Millisecond,
			Key:   rapid.SampledFrom(keys).Draw(rt, "key"),
			Stage: rapid.IntRange(0, 5).Draw(rt, "stage"),
			What:  what(rapid.IntRange(0, int(lastWhat)-1).Draw(rt, "what")),
		}
	}), 0, 30).Draw(rt, "acts")
	return h
}

func drawScript(rt *rapid.T) dagtest.Script {
	s := dagtest.Script{
		Takes: time.Duration(rapid.SampledFrom([]int{0, 1, 700, 1500, 40_000}).Draw(rt, "takes")) * time.Millisecond,
		Deaf:  rapid.IntRange(0, 2).Draw(rt, "deaf") == 0,
	}
	switch rapid.IntRange(0, 7).Draw(rt, "ends") {
	case 0, 1:
		s.Err = errFlaky
	case 2:
		s.Err = errBroken
	case 3:
		s.Err = errBusy
	case 4:
		s.Panics = "boom"
	}
	return s
}

var propertyPolicy = dag.Policy{
	"a": {Slots: 2, Deadline: 5 * s, Grace: 2 * s, MaxLost: 2, Backoff: dag.Backoff{Initial: s, Max: 5 * s}},
	"b": {Slots: 1, Deadline: 3 * s, Order: dag.ByArrival, Backoff: dag.Backoff{Initial: s, Max: 5 * s}},
}

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
	l.poke(k)
}

// graph builds the newest graph of a key.
func (l *life) graph(k string) *dag.Graph[int] {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.facts[k]
	return dagtest.Graph(l.shapes[k][f.shape], func(n *node) {
		if !f.idle[n.ID] {
			n.Key = dag.Key{Do: "work", In: uint64(f.version[n.ID] + 1)}
		}
		n.Hold = dag.Hold{Why: "a while", Until: f.held[n.ID]}
		if n.Hold.Until.IsZero() {
			n.Hold = dag.Hold{}
		}
		n.Run = l.work(k, *n)
	})
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

// check looks at one move. It is called with the engine's lock held.
func (l *life) check(m dagtest.Move[string], memos map[string]dag.Memo) string {
	if m.To.Since.IsZero() {
		return ""
	}
	from, to := m.From, m.To
	switch same := from.Key == to.Key; {
	case to.State == dag.Running:
		return cmp.Or(l.checkEdges(m, memos[m.Key]), l.checkLimit(to.Class, memos))
	case to.State == dag.Failed:
		return checkBackoff(to)
	case from.State == dag.Failed && same && from.Until.IsZero():
		return "a terminal failure did not stay"
	case from.State == dag.Failed && same && to.Since.Before(from.Until):
		return "the back-off was cut short"
	}
	return ""
}

// checkEdges looks at the edges of a stage that starts.
func (l *life) checkEdges(m dagtest.Move[string], memo dag.Memo) string {
	n := l.node(m.Key, m.ID)
	for _, need := range n.Need {
		if memo[need].State != dag.Done {
			return fmt.Sprintf("started while %s is %s", need, memo[need].State)
		}
	}
	for _, after := range n.After {
		if memo[after].State == dag.Running {
			return fmt.Sprintf("started while %s runs", after)
		}
	}
	return ""
}

func (l *life) node(k string, stage dag.ID) node {
	for _, shape := range l.shapes[k] {
		for _, n := range shape {
			if n.ID == stage {
				return n
			}
		}
	}
	panic("no such stage")
}

func (l *life) checkLimit(class string, memos map[string]dag.Memo) string {
	n := 0
	for _, memo := range memos {
		for _, e := range memo {
			if e.State == dag.Running && e.Class == class && e.Why == "" { // else it joined
				n++
			}
		}
	}
	limit := map[string]int{"a": 2, "b/x": 1, "b/y": 1}[class]
	if l.doubled.Load() {
		limit *= 2
	}
	if n > limit {
		return fmt.Sprintf("%d runs of class %s, which has %d slots", n, class, limit)
	}
	return ""
}

// checkBackoff compares the back-off of a failure with the rule, to the nanosecond.
func checkBackoff(e dag.Entry) string {
	want := min(s<<(e.Attempt-1), 5*s)
	switch {
	case errors.Is(e.Err, errBroken):
		want = 0
	case errors.Is(e.Err, errBusy):
		want = 333 * time.Millisecond
	}
	if got := e.Until.Sub(e.Since); want == 0 && !e.Until.IsZero() || want > 0 && got != want {
		return fmt.Sprintf("back-off of %v and not %v after attempt %d: %v", got, want, e.Attempt, e.Err)
	}
	return ""
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

// unsettled names a stage that should have come further by now, or that moves
// although nothing happens.
func (l *life) unsettled() string {
	moves := len(l.recorder.Moves())
	for k := range l.shapes {
		g := l.graph(k)
		memo, _ := l.engine.Step(k, g)
		for _, n := range g.Nodes() {
			switch e := memo[n.ID]; e.State {
			case dag.Done:
			case dag.Failed:
				if !e.Until.IsZero() {
					return fmt.Sprintf("%s %s still fails: %+v", k, n.ID, e)
				}
			case dag.Waiting:
				if !slices.ContainsFunc(e.On, func(on dag.ID) bool { return memo[on].State != dag.Done }) {
					return fmt.Sprintf("%s %s waits for nothing: %+v", k, n.ID, e)
				}
			default:
				return fmt.Sprintf("%s %s is still %s", k, n.ID, e.State)
			}
		}
	}
	synctest.Wait()
	if more := l.recorder.Moves()[moves:]; len(more) > 0 {
		return fmt.Sprintf("a settled graph moved: %+v", more)
	}
	return ""
}

// undelivered names a run that was not delivered exactly once to a stage.
func (l *life) undelivered() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := map[int]bool{}
	for d, n := range l.delivered {
		known[d.run] = true
		if n != 1 {
			l.breaks("%+v %d times", d, n)
		}
	}
	if len(known) != l.runs {
		l.breaks("%d runs and %d were delivered", l.runs, len(known))
	}
	return l.broken
}

func TestWhateverHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := drawHistory(rt)
		var breach string
		synctest.Test(t, func(t *testing.T) { breach = live(h).run(t) })
		if breach != "" {
			rt.Fatal(breach)
		}
	})
}

// Shutdown at a random moment: Run returns when nothing is in flight but the lost.
func TestShutdownWhateverHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := drawHistory(rt)
		h.stopAt = time.Duration(rapid.IntRange(1, 30_000).Draw(rt, "stop")) * time.Millisecond
		var breach string
		synctest.Test(t, func(t *testing.T) { breach = live(h).runUntilStopped(t) })
		if breach != "" {
			rt.Fatal(breach)
		}
	})
}

func (l *life) runUntilStopped(t *testing.T) (breach string) {
	ctx, stop := context.WithTimeout(t.Context(), l.stopAt)
	defer stop()
	var drivers sync.WaitGroup
	for _, k := range slices.Sorted(maps.Keys(l.shapes)) {
		drivers.Go(func() { l.drive(ctx, k) })
	}
	err := l.engine.Run(ctx)
	drivers.Wait()
	lost := 0
	for k := range l.shapes {
		for id, e := range l.recorder.Memo(k) {
			switch e.State {
			case dag.Running:
				breach = fmt.Sprintf("%s %s still runs", k, id)
			case dag.Lost:
				lost++
			default:
			}
		}
	}
	if (err != nil) != (lost > 0) {
		breach = fmt.Sprintf("%d are lost and Run returned: %v", lost, err)
	}
	time.Sleep(time.Hour) // the lost come back
	synctest.Wait()
	return cmp.Or(breach, l.recorder.Breach(), l.undelivered())
}
