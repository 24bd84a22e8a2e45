package dag_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
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
	counts  bool // the builder of graphs counts ended runs
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
	h.counts = rapid.Bool().Draw(rt, "counts")
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
