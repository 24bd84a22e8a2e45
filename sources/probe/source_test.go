package probe_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/sources/probe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type event = pipeline.Event[pod.Key, probe.Due]

func newSource() *probe.Source[probe.Due] {
	return probe.New(func(d probe.Due) event { return event{Key: d.Key, Change: d} })
}

var errEnd = errors.New("end of test")

// start runs s in the bubble and returns what it emitted up to stop.
func start(t *testing.T, s *probe.Source[probe.Due]) (stop func() []event) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	var wg sync.WaitGroup
	var events []event
	wg.Go(func() {
		err := s.Run(ctx, func(ev event) { events = append(events, ev) })
		require.ErrorIs(t, err, errEnd)
	})
	return func() []event {
		synctest.Wait()
		cancel(errEnd)
		wg.Wait()
		require.Equal(t, pipeline.Synced(probe.Name), events[0].Topic)
		return events[1:]
	}
}

// story is what each event was about, and when it was seen.
func story(began time.Time, events []event) []string {
	out := make([]string, 0, len(events))
	for _, ev := range events {
		out = append(out, ev.Seen.Sub(began).String()+" "+string(ev.Key)+"/"+ev.Change.ID+"/"+ev.Change.Kind)
	}
	return out
}

func TestChecksFallDue(t *testing.T) {
	const s = time.Second
	for name, tc := range map[string]struct {
		do   func(src *probe.Source[probe.Due], at func(d time.Duration) time.Time)
		want []string
	}{
		"in order": {func(src *probe.Source[probe.Due], at func(time.Duration) time.Time) {
			src.Set("p", "c", "liveness", at(20*s))
			src.Set("p", "c", "readiness", at(10*s))
			src.Set("o", "d", "startup", at(10*s))
		}, []string{"10s o/d/startup", "10s p/c/readiness", "20s p/c/liveness"}},
		"moved earlier": {func(src *probe.Source[probe.Due], at func(time.Duration) time.Time) {
			src.Set("p", "c", "liveness", at(20*s))
			time.Sleep(5 * s)
			src.Set("p", "c", "liveness", at(7*s))
		}, []string{"7s p/c/liveness"}},
		"moved later": {func(src *probe.Source[probe.Due], at func(time.Duration) time.Time) {
			src.Set("p", "c", "liveness", at(20*s))
			time.Sleep(5 * s)
			src.Set("p", "c", "liveness", at(30*s))
		}, []string{"30s p/c/liveness"}},
		"overdue": {func(src *probe.Source[probe.Due], at func(time.Duration) time.Time) {
			src.Set("p", "c", "liveness", at(-20*s))
		}, []string{"0s p/c/liveness"}},
		"once for each time": {func(src *probe.Source[probe.Due], at func(time.Duration) time.Time) {
			src.Set("p", "c", "liveness", at(1*s))
			time.Sleep(2 * s)
			src.Set("p", "c", "liveness", at(1*s)) // by a step that does not know the result yet
			time.Sleep(1 * s)
			src.Set("p", "c", "liveness", at(11*s))
		}, []string{"1s p/c/liveness", "11s p/c/liveness"}},
		"taken back": {func(src *probe.Source[probe.Due], at func(time.Duration) time.Time) {
			src.Set("p", "c", "liveness", at(1*s))
			src.Set("p", "c", "liveness", time.Time{})
			src.Set("p", "c", "readiness", time.Time{}) // was never there
		}, nil},
		"dropped": {func(src *probe.Source[probe.Due], at func(time.Duration) time.Time) {
			src.Set("p", "c", "liveness", at(1*s))
			src.Set("p", "d", "readiness", at(1*s))
			src.Set("o", "e", "readiness", at(2*s))
			src.Drop("p", "unknown")
		}, []string{"2s o/e/readiness"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src, began := newSource(), time.Now()
				stop := start(t, src)
				tc.do(src, func(d time.Duration) time.Time { return began.Add(d) })
				time.Sleep(time.Minute)
				if tc.want == nil {
					tc.want = []string{}
				}
				require.Equal(t, tc.want, story(began, stop()))
				require.Zero(t, src.Waiting())
			})
		})
	}
}

func TestRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, began := newSource(), time.Now()
		stop := start(t, src)
		src.Set("p", "c", "liveness", began.Add(time.Second))
		src.Set("p", "c", "readiness", began.Add(10*time.Second))
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"1s p/c/liveness"}, story(began, stop()))
		time.Sleep(20 * time.Second)
		stop = start(t, src)
		require.Equal(t, []string{"22s p/c/readiness"}, story(began, stop()), "late, and nothing twice")
	})
}

func TestTenThousandChecksOwnNothing(t *testing.T) {
	const checks, period = 10_000, 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		src, began := newSource(), time.Now()
		before := runtime.NumGoroutine()
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		count := 0
		wg.Go(func() {
			_ = src.Run(ctx, func(ev event) {
				if ev.Topic != "" {
					return
				}
				count++
				if !ev.Change.At.Equal(time.Now()) {
					t.Errorf("due at %s, emitted at %s", ev.Change.At, time.Now())
				}
				src.Set(ev.Key, ev.Change.ID, ev.Change.Kind, ev.Change.At.Add(period)) // the next one
			})
		})
		var setters sync.WaitGroup
		for w := range 4 {
			setters.Go(func() {
				for i := w; i < checks; i += 4 {
					src.Set(pod.Key("pod"+strconv.Itoa(i/2)), "c", []string{"liveness", "readiness"}[i%2], began.Add(time.Duration(i)*time.Millisecond))
				}
			})
		}
		setters.Wait()
		synctest.Wait()
		require.Less(t, runtime.NumGoroutine(), before+10, "none for each check")
		time.Sleep(3*period - time.Millisecond)
		synctest.Wait()
		require.Equal(t, 3*checks, count)
		for i := range checks / 2 {
			src.Drop(pod.Key("pod" + strconv.Itoa(i)))
		}
		require.Zero(t, src.Waiting())
		time.Sleep(period)
		synctest.Wait()
		require.Equal(t, 3*checks, count)
		cancel(errEnd)
		wg.Wait()
	})
}
