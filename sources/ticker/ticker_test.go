package ticker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/sources/ticker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type event = pipeline.Event[string, time.Time]

var _ pipeline.Source[string, time.Time] = (*ticker.Source[string, time.Time])(nil)

func every(period time.Duration, atOnce bool) *ticker.Source[string, time.Time] {
	return &ticker.Source[string, time.Time]{
		Called: "gc", Period: period, AtOnce: atOnce,
		Event: func(tick time.Time) event { return event{Key: "node/gc", Change: tick} },
	}
}

// ticks runs a source for d and returns when, after the start, its events
// came. Each emit takes as long as busy says.
func ticks(t *testing.T, s *ticker.Source[string, time.Time], d, busy time.Duration) []time.Duration {
	t.Helper()
	errEnd := errors.New("end of test")
	ctx, cancel := context.WithTimeoutCause(t.Context(), d, errEnd)
	defer cancel()
	start := time.Now()
	var at []time.Duration
	synced := 0
	err := s.Run(ctx, func(ev event) {
		if ev.Topic != "" {
			require.Equal(t, pipeline.Synced("gc"), ev.Topic)
			synced++
			return
		}
		require.Equal(t, "gc", ev.Source)
		require.Equal(t, ev.Change, ev.Seen, "seen when it was due")
		at = append(at, time.Since(start))
		time.Sleep(busy)
	})
	require.ErrorIs(t, err, errEnd)
	require.Equal(t, 1, synced)
	return at
}

func TestTicks(t *testing.T) {
	const s = time.Second
	tests := map[string]struct {
		atOnce bool
		busy   time.Duration
		want   []time.Duration
	}{
		"first after a period":         {want: []time.Duration{10 * s, 20 * s, 30 * s}},
		"first at once":                {atOnce: true, want: []time.Duration{0, 10 * s, 20 * s, 30 * s}},
		"a slow emit makes no drift":   {busy: 3 * s, want: []time.Duration{10 * s, 20 * s, 30 * s}},
		"ticks missed are not made up": {busy: 12 * s, want: []time.Duration{10 * s, 30 * s}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				require.Equal(t, tt.want, ticks(t, every(10*s, tt.atOnce), 35*s, tt.busy))
			})
		})
	}
}

func TestRunsAgainAfterItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := every(time.Minute, true)
		require.Len(t, ticks(t, src, 90*time.Second, 0), 2)
		require.Equal(t, []time.Duration{0, time.Minute}, ticks(t, src, 90*time.Second, 0), "counted from the new start")
	})
}
