package app_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/cmd/flowlet/app"
	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/internal/bench"
	"github.com/flowlet/flowlet/internal/pod"
)

// settled is one pod of fifteen stages or more that runs and has nothing to do.
type settled struct {
	bench.System

	pod *v1.Pod
}

func (s settled) key() pod.Key         { return pod.KeyOf(s.pod.UID) }
func (s settled) syncer() bench.Syncer { y, _ := s.System.(bench.Syncer); return y }
func (s settled) state() *pod.State    { return app.StateOf(s.System, s.key()) }
func (s settled) step()                { app.DomainOf(s.System).Step(s.key(), s.state(), 0) }
func (s settled) stages() int          { return len(app.DomainOf(s.System).Look(time.Now(), s.state()).Nodes()) }

func shape(containers, vols int) bench.Shape {
	return bench.Shape{Containers: containers, Volumes: vols, Images: []string{"example.com/app:1"}, HostNetwork: true}
}

// settle runs an agent on a simulated runtime until its one pod is settled.
// The agent has ended when the test has.
func settle(tb testing.TB) settled {
	tb.Helper()
	sim := crisim.New(crisim.Config{Images: map[string]crisim.Image{"example.com/app:1": {Present: true}}})
	conn := sim.Direct()
	ready := make(chan bench.Started, 10)
	agents := app.BenchAgents{Root: tb.TempDir(), Log: slog.New(slog.DiscardHandler)}
	s, err := agents.Agent(bench.Setup{
		Client: cri.New(conn), Simulated: true, Pods: 1,
		Hooks: bench.Hooks{Started: func(s bench.Started) { ready <- s }},
	})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, conn.Close()) })
	run(tb, s)
	p := shape(1, 2).Make(1)[0]
	s.Set(p)
	require.Equal(tb, "ready", (<-ready).Outcome)
	quiet(tb, s)
	return settled{s, p}
}

// run runs an agent and waits until it takes pods.
func run(tb testing.TB, s bench.System) {
	tb.Helper()
	ctx, stop := context.WithCancelCause(context.Background())
	up := make(chan struct{})
	var done sync.WaitGroup
	var err error
	done.Go(func() { err = s.Run(ctx, func() { close(up) }) })
	tb.Cleanup(func() {
		stop(nil)
		done.Wait()
		require.NoError(tb, err)
	})
	<-up
}

// quiet waits until nothing has happened in an agent for a while.
func quiet(tb testing.TB, s bench.System) {
	tb.Helper()
	for last := s.Stats(); ; {
		time.Sleep(50 * time.Millisecond)
		now := s.Stats()
		if now.Runs == last.Runs && now.Steps == last.Steps && now.Dirty == 0 {
			return
		}
		last = now
	}
}

func TestAStepOfASettledPodRunsNothing(t *testing.T) {
	s := settle(t)
	require.GreaterOrEqual(t, s.stages(), 15)
	before := s.Stats()
	for range 10 {
		s.step()
	}
	require.Equal(t, before.Runs, s.Stats().Runs)
}

func TestAnUnchangedEventMakesNoStep(t *testing.T) {
	s := settle(t)
	before := s.Stats()
	s.syncer().Resync(s.pod.UID)
	s.syncer().Relist(s.pod.UID)
	after := s.Stats()
	require.GreaterOrEqual(t, after.Unchanged, before.Unchanged+2)
	quiet(t, s)
	require.Equal(t, before.Steps, s.Stats().Steps)
	require.Equal(t, before.Runs, s.Stats().Runs)
}

func BenchmarkSettledStep(b *testing.B) {
	s := settle(b)
	b.ReportMetric(float64(s.stages()), "stages")
	b.ReportAllocs()
	for b.Loop() {
		s.step()
	}
}

func BenchmarkUnchangedEvent(b *testing.B) {
	s := settle(b)
	for name, emit := range map[string]func(){
		"resync": func() { s.syncer().Resync(s.pod.UID) },
		"relist": func() { s.syncer().Relist(s.pod.UID) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				emit()
			}
		})
	}
}

func BenchmarkStart500Sim(b *testing.B) {
	for _, endpoint := range []string{bench.Sim, bench.SimDirect} {
		b.Run(endpoint, func(b *testing.B) { benchmarkStart(b, endpoint) })
	}
}

func benchmarkStart(b *testing.B, endpoint string) {
	agents := app.BenchAgents{Root: b.TempDir(), Log: slog.New(slog.DiscardHandler)}
	m := &bench.Bench{
		Backend: bench.Backend{Endpoint: endpoint}, Shape: shape(1, 0), New: agents.Agent, Machine: agents.Machine,
		Runs: 1, Timeout: time.Minute, Progress: func(string) {},
	}
	var pods, cpu, heap float64
	n := 0.0
	for b.Loop() {
		r, err := m.Start(b.Context(), bench.StartOptions{Batches: []int{500}})
		require.NoError(b, err)
		run := r.Batches[0].Agent.Median
		pods, cpu, heap, n = pods+run.PodsPerS, cpu+run.CPUMs, heap+run.Heap, n+1
	}
	b.ReportMetric(pods/n, "pods/s")
	b.ReportMetric(cpu/n, "cpu-ms/pod")
	b.ReportMetric(heap/n, "heap-B/pod")
}
