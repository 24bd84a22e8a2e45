package pipeline_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/pipeline/pipelinetest"
)

type (
	source = pipelinetest.Source[string, int]
	action = pipelinetest.Action[string, int]
)

var errWatch = errors.New("watch: connection refused")

// gaps returns the times between the starts of a source's runs.
func gaps(s *source) []time.Duration {
	var all []time.Duration
	starts := s.Starts()
	for i := 1; i < len(starts); i++ {
		all = append(all, starts[i].Sub(starts[i-1]))
	}
	return all
}

func TestSourceEventsAreSigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &signed{}
		p := pipeline.New[string, int, string](d, pipeline.Options{})
		p.Add(&source{Called: "file", Script: [][]action{{
			pipelinetest.Emits(event{Key: "own"}, event{Key: "other", Source: "relayed"}),
			pipelinetest.StaysUntilStopped[string, int](),
		}}})
		ctx, stop := contextOf(t)
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		synctest.Wait()
		own, _ := p.State("own")
		other, _ := p.State("other")
		require.Equal(t, "file", own)
		require.Equal(t, "relayed", other)
		stop()
		require.NoError(t, <-done)
	})
}

func TestSourceIsSyncedOnceItSaidSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{Called: "file", Script: [][]action{
			{
				pipelinetest.Waits[string, int](time.Second), pipelinetest.Syncs[string, int]("file"),
				pipelinetest.Waits[string, int](time.Second), pipelinetest.Fails[string, int](errWatch),
			},
			{pipelinetest.StaysUntilStopped[string, int]()},
		}}
		p := start(t, &pipelinetest.Domain{}, s)
		require.Equal(t, []pipeline.SourceStats{{Name: "file"}}, p.Stats().Sources)
		pass(time.Second)
		require.Equal(t, []pipeline.SourceStats{{Name: "file", Synced: true}}, p.Stats().Sources)
		pass(time.Second)
		down := p.Stats().Sources[0]
		require.ErrorIs(t, down.Err, errWatch)
		require.Equal(t, "source file: watch: connection refused", down.Err.Error())
		require.Equal(t, time.Now().Add(time.Second), down.RetryAt)
		pass(time.Second)
		up := p.Stats().Sources[0]
		require.Equal(t, 1, up.Restarts)
		require.True(t, up.Synced)
		require.Zero(t, up.RetryAt)
	})
}

func TestSourceRestarts(t *testing.T) {
	const s = time.Second
	forever := pipelinetest.StaysUntilStopped[string, int]()
	fails := []action{pipelinetest.Fails[string, int](errWatch)}
	tests := map[string]struct {
		script  [][]action
		want    []time.Duration
		wantErr string
	}{
		"error: doubling up to a minute": {
			script:  [][]action{fails},
			want:    []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s},
			wantErr: "source src: watch: connection refused",
		},
		"no error but early": {
			script:  [][]action{{}, {forever}},
			want:    []time.Duration{s},
			wantErr: "source src: returned although it was not asked to",
		},
		"panic": {
			script:  [][]action{{pipelinetest.Panics[string, int]("nil map")}, {forever}},
			want:    []time.Duration{s},
			wantErr: "source src: panic: nil map",
		},
		"a run longer than the longest delay starts over": {
			script: [][]action{fails, fails, fails, {
				pipelinetest.Waits[string, int](61 * s), pipelinetest.Fails[string, int](errWatch),
			}, {forever}},
			want:    []time.Duration{s, 2 * s, 4 * s, 62 * s},
			wantErr: "source src: watch: connection refused",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := &source{Called: "src", Script: tt.script}
				p := start(t, &pipelinetest.Domain{}, src)
				pass(190 * s)
				require.Equal(t, tt.want, gaps(src))
				got := p.Stats().Sources[0]
				require.ErrorContains(t, got.Err, tt.wantErr)
				require.Equal(t, len(tt.want), got.Restarts)
			})
		})
	}
}

func TestOneSourceDownLeavesTheOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := &source{Called: "bad", Script: [][]action{{pipelinetest.Panics[string, int]("oops")}}}
		good := &source{Called: "good", Script: [][]action{{
			pipelinetest.Waits[string, int](time.Minute), pipelinetest.Emits(event{Key: "a", Change: 1}),
			pipelinetest.StaysUntilStopped[string, int](),
		}}}
		d := &pipelinetest.Domain{}
		start(t, d, bad, good)
		pass(2 * time.Minute)
		require.Equal(t, []string{"a"}, keys(d.Steps()))
		require.Len(t, good.Starts(), 1)
	})
}
