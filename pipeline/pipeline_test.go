package pipeline_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/pipeline/pipelinetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	event = pipelinetest.Event
	state = pipelinetest.State
	pipe  = pipeline.Pipeline[string, int, state]
)

// start runs a pipeline in a bubble until the test ends.
func start(t *testing.T, d *pipelinetest.Domain, sources ...pipeline.Source[string, int]) *pipe {
	t.Helper()
	p := pipeline.New(d, pipeline.Options{})
	for _, s := range sources {
		p.Add(s)
	}
	run(t, p)
	return p
}

func run(t *testing.T, p *pipe) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background()) //nolint:usetesting // ended by the clean-up below
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	synctest.Wait()
}

// pass lets virtual time pass and everybody finish what they do at its end.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// keys returns the keys of steps in their order.
func keys(steps []pipelinetest.Step) []string {
	var all []string
	for _, s := range steps {
		all = append(all, s.Key)
	}
	return all
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func TestSteps(t *testing.T) {
	bubble(t, "an event is folded at once and stepped", func(t *testing.T) {
		d := &pipelinetest.Domain{}
		p := start(t, d)
		p.Emit(event{Key: "a", Change: 7, Cause: 99})
		s, ok := p.State("a")
		require.True(t, ok)
		require.Equal(t, state{Value: 7, Events: 1}, s)
		synctest.Wait()
		require.Equal(t, []pipelinetest.Step{{Key: "a", State: s, Cause: 99, At: time.Now()}}, d.Steps())
	})
	bubble(t, "an event that changes nothing is not stepped", func(t *testing.T) {
		d := &pipelinetest.Domain{}
		p := start(t, d)
		p.Emit(event{Key: "a", Change: 7})
		synctest.Wait()
		p.Emit(event{Key: "a", Change: 7})
		synctest.Wait()
		require.Len(t, d.Steps(), 1)
		require.EqualValues(t, 1, p.Stats().Unchanged)
	})
	bubble(t, "events before Run are stepped when it begins", func(t *testing.T) {
		d := &pipelinetest.Domain{}
		p := pipeline.New(d, pipeline.Options{})
		p.Emit(event{Key: "a", Change: 1})
		synctest.Wait()
		require.Empty(t, d.Steps())
		run(t, p)
		require.Len(t, d.Steps(), 1)
	})
	bubble(t, "many events of a key are one step with the newest state and cause", func(t *testing.T) {
		d := &pipelinetest.Domain{}
		p := pipeline.New(d, pipeline.Options{})
		for i := range 100 {
			p.Emit(event{Key: "a", Change: i, Cause: uint64(1000 + i)})
		}
		run(t, p)
		require.Equal(t, []pipelinetest.Step{{Key: "a", State: state{Value: 99, Events: 100}, Cause: 1099, At: time.Now()}}, d.Steps())
		require.EqualValues(t, 99, p.Stats().Coalesced)
	})
	bubble(t, "an event without a cause gets one of its own", func(t *testing.T) {
		d := &pipelinetest.Domain{}
		p := start(t, d)
		p.Emit(event{Key: "a", Change: 1})
		p.Emit(event{Key: "b", Change: 1})
		synctest.Wait()
		steps := d.Steps()
		require.NotZero(t, steps[0].Cause)
		require.NotZero(t, steps[1].Cause)
		require.NotEqual(t, steps[0].Cause, steps[1].Cause)
	})
	bubble(t, "Dirty steps without a change, and only keys with a state", func(t *testing.T) {
		d := &pipelinetest.Domain{}
		p := start(t, d)
		p.Emit(event{Key: "a", Change: 1, Cause: 5})
		synctest.Wait()
		p.Dirty("a")
		p.Dirty("nobody")
		synctest.Wait()
		require.Equal(t, []string{"a", "a"}, keys(d.Steps()))
		require.EqualValues(t, 5, d.Steps()[1].Cause, "the newest event's")
	})
	bubble(t, "an event during the step of its key is stepped after it", func(t *testing.T) {
		d := &pipelinetest.Domain{}
		var p *pipe
		d.OnStep = func(k string, s state) pipeline.Next {
			if s.Value == 1 {
				p.Emit(event{Key: k, Change: 2})
			}
			return pipeline.Next{}
		}
		p = start(t, d)
		p.Emit(event{Key: "a", Change: 1})
		synctest.Wait()
		require.Len(t, d.Steps(), 2)
		require.Equal(t, 2, d.Steps()[1].State.Value)
	})
}

func TestOrder(t *testing.T) {
	byValue := func(_ string, s state) int { return s.Value }
	bubble(t, "higher priority first, then first in first out", func(t *testing.T) {
		d := &pipelinetest.Domain{PriorityOf: byValue}
		p := pipeline.New(d, pipeline.Options{})
		for i, k := range []string{"a", "b", "c", "d", "e"} {
			p.Emit(event{Key: k, Change: []int{0, 5, 0, 5, 9}[i]})
		}
		run(t, p)
		require.Equal(t, []string{"e", "b", "d", "a", "c"}, keys(d.Steps()))
	})
	bubble(t, "a key that waits keeps its turn and gets its newest priority", func(t *testing.T) {
		d := &pipelinetest.Domain{PriorityOf: byValue}
		p := pipeline.New(d, pipeline.Options{})
		p.Emit(event{Key: "a", Change: 1})
		p.Emit(event{Key: "b", Change: 2})
		p.Emit(event{Key: "c", Change: 2})
		p.Emit(event{Key: "a", Change: 2})
		run(t, p)
		require.Equal(t, []string{"a", "b", "c"}, keys(d.Steps()))
	})
}

func TestWake(t *testing.T) {
	bubble(t, "keys are stepped exactly when they asked for it", func(t *testing.T) {
		start0 := time.Now()
		wakes := map[string]time.Duration{"a": 3 * time.Second, "b": time.Nanosecond, "c": 5 * time.Hour}
		d := &pipelinetest.Domain{}
		d.OnStep = func(k string, _ state) pipeline.Next {
			if time.Since(start0) > 0 {
				return pipeline.Next{}
			}
			return pipeline.Next{Wake: start0.Add(wakes[k])}
		}
		p := start(t, d)
		for k := range wakes {
			p.Emit(event{Key: k, Change: 1})
		}
		pass(24 * time.Hour)
		for k, after := range wakes {
			steps := d.StepsOf(k)
			require.Len(t, steps, 2, k)
			require.Equal(t, after, steps[1].At.Sub(start0), k)
		}
	})
	bubble(t, "the newest step's wish counts", func(t *testing.T) {
		start0 := time.Now()
		d := &pipelinetest.Domain{}
		d.OnStep = func(_ string, s state) pipeline.Next {
			switch s.Value {
			case 1:
				return pipeline.Next{Wake: start0.Add(time.Hour)}
			case 2:
				return pipeline.Next{Wake: start0.Add(2 * time.Hour)}
			}
			return pipeline.Next{}
		}
		p := start(t, d)
		p.Emit(event{Key: "a", Change: 1})
		synctest.Wait()
		p.Emit(event{Key: "a", Change: 2})
		pass(90 * time.Minute)
		require.Len(t, d.Steps(), 2)
		p.Emit(event{Key: "a", Change: 3})
		pass(24 * time.Hour)
		require.Len(t, d.Steps(), 3, "the third step wished for none")
	})
	bubble(t, "a wake-up that has passed is a step at once", func(t *testing.T) {
		d := &pipelinetest.Domain{}
		d.OnStep = func(string, state) pipeline.Next {
			if len(d.Steps()) == 1 {
				return pipeline.Next{Wake: time.Now().Add(-time.Hour)}
			}
			return pipeline.Next{}
		}
		p := start(t, d)
		p.Emit(event{Key: "a", Change: 1})
		synctest.Wait()
		require.Len(t, d.Steps(), 2)
	})
}

func TestTopics(t *testing.T) {
	reads := func(topics ...string) func(string, state) pipeline.Next {
		return func(string, state) pipeline.Next { return pipeline.Next{Reads: topics} }
	}
	bubble(t, "a change of a topic steps who read it, with its cause", func(t *testing.T) {
		d := &pipelinetest.Domain{}
		d.OnStep = func(k string, _ state) pipeline.Next {
			return pipeline.Next{Reads: map[string][]string{"a": {"net"}, "b": {"ledger", "net"}}[k]}
		}
		p := start(t, d)
		for _, k := range []string{"c", "b", "a"} {
			p.Emit(event{Key: k, Change: 1})
		}
		synctest.Wait()
		p.Emit(event{Topic: "net", Change: 3, Cause: 77})
		synctest.Wait()
		steps := d.Steps()[3:]
		require.Equal(t, []string{"b", "a"}, keys(steps), "the older key first")
		require.EqualValues(t, 77, steps[0].Cause)
		require.Equal(t, 3, d.Value("net"))
		require.Equal(t, 3, p.Len(), "a topic is no key")
	})
	bubble(t, "who reads it no more is left alone", func(t *testing.T) {
		d := &pipelinetest.Domain{}
		d.OnStep = func(_ string, s state) pipeline.Next {
			if s.Value == 1 {
				return pipeline.Next{Reads: []string{"net"}}
			}
			return pipeline.Next{}
		}
		p := start(t, d)
		p.Emit(event{Key: "a", Change: 1})
		synctest.Wait()
		p.Emit(event{Key: "a", Change: 2})
		synctest.Wait()
		p.Emit(event{Topic: "net", Change: 3})
		synctest.Wait()
		require.Len(t, d.Steps(), 2)
	})
	bubble(t, "a topic that changes while it is read for the first time steps again", func(t *testing.T) {
		d := &pipelinetest.Domain{}
		var seen []int
		d.OnStep = func(string, state) pipeline.Next {
			seen = append(seen, d.Value("net"))
			time.Sleep(time.Second) // the topic changes meanwhile
			return pipeline.Next{Reads: []string{"net"}}
		}
		p := start(t, d)
		p.Emit(event{Key: "a", Change: 1})
		pass(time.Second / 2)
		p.Emit(event{Topic: "net", Change: 8, Cause: 42})
		p.Emit(event{Topic: "other", Change: 8})
		pass(time.Minute)
		require.Equal(t, []int{0, 8}, seen)
		require.EqualValues(t, 42, d.Steps()[1].Cause)
	})
	bubble(t, "a topic changed before the step began is not stepped twice", func(t *testing.T) {
		d := &pipelinetest.Domain{OnStep: reads("net")}
		p := start(t, d)
		p.Emit(event{Topic: "net", Change: 8})
		p.Emit(event{Key: "a", Change: 1})
		synctest.Wait()
		require.Len(t, d.Steps(), 1)
	})
}

func TestForget(t *testing.T) {
	bubble(t, "the state is dropped", func(t *testing.T) {
		d := &pipelinetest.Domain{OnStep: func(string, state) pipeline.Next {
			return pipeline.Next{Forget: true, Reads: []string{"net"}, Wake: time.Now().Add(time.Hour)}
		}}
		p := start(t, d)
		p.Emit(event{Key: "a", Change: 1})
		synctest.Wait()
		require.Zero(t, p.Len())
		_, ok := p.State("a")
		require.False(t, ok)
		p.Emit(event{Topic: "net", Change: 1})
		pass(2 * time.Hour)
		require.Len(t, d.Steps(), 1, "neither topic nor wake-up steps it")
	})
	bubble(t, "an event while the step runs keeps it", func(t *testing.T) {
		d := &pipelinetest.Domain{}
		d.OnStep = func(_ string, s state) pipeline.Next {
			time.Sleep(time.Second)
			return pipeline.Next{Forget: s.Value == 1}
		}
		p := start(t, d)
		p.Emit(event{Key: "a", Change: 1})
		pass(time.Second / 2)
		p.Emit(event{Key: "a", Change: 2})
		pass(time.Minute)
		s, ok := p.State("a")
		require.True(t, ok)
		require.Equal(t, state{Value: 2, Events: 2}, s)
		require.Len(t, d.Steps(), 2)
	})
	bubble(t, "a key that comes back starts anew", func(t *testing.T) {
		d := &pipelinetest.Domain{OnStep: func(_ string, s state) pipeline.Next { return pipeline.Next{Forget: s.Value == 1} }}
		p := start(t, d)
		p.Emit(event{Key: "a", Change: 1})
		synctest.Wait()
		p.Emit(event{Key: "a", Change: 2})
		synctest.Wait()
		require.Equal(t, state{Value: 2, Events: 1}, d.Steps()[1].State)
	})
}

func TestRunIsForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, &pipelinetest.Domain{})
		require.Error(t, p.Run(t.Context()))
		require.Panics(t, func() { p.Add(&pipelinetest.Source[string, int]{Called: "late"}) })
	})
}

func TestSourceNamesAreUnique(t *testing.T) {
	p := pipeline.New(&pipelinetest.Domain{}, pipeline.Options{})
	p.Add(&pipelinetest.Source[string, int]{Called: "file"})
	require.PanicsWithValue(t, `pipeline: two sources are called "file"`, func() {
		p.Add(&pipelinetest.Source[string, int]{Called: "file"})
	})
}

// Many emitters, in real time so that the race detector has something to see:
// the last state of each key has to be stepped.
func TestConcurrentEmitsLoseNoWakeUp(t *testing.T) {
	const emitters, events, names = 8, 500, 5
	d := &pipelinetest.Domain{}
	p := pipeline.New(d, pipeline.Options{})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()

	var all sync.WaitGroup
	for e := range emitters {
		all.Go(func() {
			for i := range events {
				p.Emit(event{Key: fmt.Sprint("k", i%names), Change: e*events + i})
			}
		})
	}
	all.Wait()
	require.Eventually(t, func() bool {
		for i := range names {
			k := fmt.Sprint("k", i)
			s, _ := p.State(k)
			steps := d.StepsOf(k)
			if len(steps) == 0 || steps[len(steps)-1].State != s {
				return false
			}
		}
		return true
	}, 5*time.Second, time.Millisecond)
	stop()
	require.NoError(t, <-done)
	require.EqualValues(t, emitters*events, p.Stats().Folded)
}

func TestUnchangedEventAllocatesNothing(t *testing.T) {
	p := pipeline.New(&pipelinetest.Domain{}, pipeline.Options{})
	ev := event{Key: "a", Change: 1, Source: "test"}
	p.Emit(ev)
	require.Zero(t, testing.AllocsPerRun(100, func() { p.Emit(ev) }))
	require.Zero(t, testing.AllocsPerRun(100, func() { p.Dirty("a") }), "nor does a mark")
}

func BenchmarkEmitUnchanged(b *testing.B) {
	p := pipeline.New(&pipelinetest.Domain{}, pipeline.Options{})
	ev := event{Key: "a", Change: 1}
	p.Emit(ev)
	b.ReportAllocs()
	for b.Loop() {
		p.Emit(ev)
	}
}
