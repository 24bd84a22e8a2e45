package pipeline_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/pipeline/pipelinetest"
)

// signed is a domain whose states are the names of the sources.
type signed struct{}

func (*signed) Fold(_ string, ev event) (string, bool)        { return ev.Source, true }
func (*signed) Topic(event)                                   {}
func (*signed) Priority(string, string) int                   { return 0 }
func (*signed) Step(string, string, uint64) (n pipeline.Next) { return n }
func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

// act is an event of a random history, some time after the one before.
type act struct {
	After time.Duration
	Event event
	Dirty bool
}

func acts(rt *rapid.T, emitter int) []act {
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) act {
		a := act{
			After: time.Duration(rapid.IntRange(0, 3).Draw(rt, "after")) * time.Millisecond,
			Event: event{Change: rapid.IntRange(0, 3).Draw(rt, "change")},
		}
		switch rapid.IntRange(0, 3).Draw(rt, "what") {
		case 0:
			a.Event.Topic = rapid.SampledFrom([]string{"t0", "t1"}).Draw(rt, "topic")
		case 1:
			a.Dirty = true
			fallthrough
		default:
			a.Event.Key = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key")
		}
		return a
	}), 0, 25).Draw(rt, fmt.Sprint("emitter", emitter))
}

// world is what the property looks at: the newest state that was stepped, and
// the newest topic values that were read.
type world struct {
	*pipelinetest.Domain

	took    time.Duration
	inStep  bool
	stepped map[string]state
	read    map[string]map[string]int
	broken  string
}

// topicsOf says which topics a key reads in a state: not always the same.
func topicsOf(s state) []string { return [][]string{nil, {"t0"}, {"t1"}, {"t0", "t1"}}[s.Value] }

func (w *world) step(k string, s state) pipeline.Next {
	if w.inStep {
		w.broken = "two steps at once"
	}
	w.inStep = true
	defer func() { w.inStep = false }()
	w.stepped[k], w.read[k] = s, map[string]int{}
	next := pipeline.Next{Reads: topicsOf(s), Forget: s.Value == 0 && s.Events > 3}
	for _, topic := range next.Reads {
		w.read[k][topic] = w.Value(topic)
	}
	time.Sleep(w.took)
	return next
}

// stale names a key whose newest facts no step has seen.
func (w *world) stale(p *pipe) string {
	for _, k := range []string{"a", "b", "c"} {
		s, ok := p.State(k)
		if !ok {
			continue
		}
		if w.stepped[k] != s {
			return fmt.Sprintf("%s is %v and was last stepped as %v", k, s, w.stepped[k])
		}
		for topic, value := range w.read[k] {
			if value != w.Value(topic) {
				return fmt.Sprintf("%s read %s = %d and it is %d now", k, topic, value, w.Value(topic))
			}
		}
	}
	return ""
}

// Whatever is emitted, by whom and when: once it is quiet, the last step of
// each key has seen its newest state and the newest topics that it reads.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		histories := [][]act{acts(rt, 0), acts(rt, 1), acts(rt, 2)}
		w := &world{stepped: map[string]state{}, read: map[string]map[string]int{}}
		w.took = time.Duration(rapid.IntRange(0, 3).Draw(rt, "step takes")) * time.Millisecond
		w.Domain = &pipelinetest.Domain{OnStep: w.step, PriorityOf: func(_ string, s state) int { return s.Value }}
		var broken string
		synctest.Test(t, func(t *testing.T) {
			p := pipeline.New(w.Domain, pipeline.Options{})
			run(t, p)
			for _, history := range histories {
				go func() {
					for _, a := range history {
						time.Sleep(a.After)
						if a.Dirty {
							p.Dirty(a.Event.Key)
						} else {
							p.Emit(a.Event)
						}
					}
				}()
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if broken = w.stale(p); broken == "" && p.Stats().Dirty != 0 {
				broken = "a key is dirty and nobody steps it"
			}
		})
		if broken == "" {
			broken = w.broken
		}
		if broken != "" {
			rt.Fatal(broken)
		}
	})
}
