package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

// StartOptions say what the start workload does.
type StartOptions struct {
	Batches []int // numbers of pods that are started at once
	Floor   bool  // measure the floor too
}

// sweepOf are the concurrencies among which the floor's best one is looked for.
func sweepOf() []int { return []int{1, 2, 4, 8, 16, 32} }

// warmUp is the number of pods that are started before anything is measured.
const warmUp = 10

// Start starts batches of pods and removes them again, Runs times each, with
// the agent and, in turns, the floor. On an error it returns the batches that
// were finished.
func (b *Bench) Start(ctx context.Context, o StartOptions) (*StartReport, error) {
	head, err := b.head(ctx, StartSchema)
	r := &StartReport{Head: head}
	if err != nil {
		return r, err
	}
	if _, _, err := b.agentRun(ctx, warmUp, "warming up"); err != nil {
		return r, err
	}
	for _, n := range o.Batches {
		batch, err := b.batch(ctx, n, o.Floor)
		if err != nil {
			return r, err
		}
		r.Batches = append(r.Batches, *batch)
	}
	return r, nil
}

func (b *Bench) batch(ctx context.Context, n int, withFloor bool) (*Batch, error) {
	out := &Batch{Pods: n}
	if withFloor {
		out.Floor = &Driver{}
		if err := b.tune(ctx, out); err != nil {
			return nil, err
		}
	}
	var path pathSum
	for i := range b.Runs {
		agent := func() error {
			run, p, err := b.agentRun(ctx, n, fmt.Sprintf("agent, %d pods, run %d of %d", n, i+1, b.Runs))
			out.Agent.Runs = append(out.Agent.Runs, run)
			path.merge(p)
			return err
		}
		floor := func() error {
			if out.Floor == nil {
				return nil
			}
			run, err := b.floorRun(ctx, n, out.Floor.Slots)
			out.Floor.Runs = append(out.Floor.Runs, run)
			return err
		}
		order := []func() error{agent, floor}
		if i%2 == 1 { // neither always profits from what the other left warm
			order = []func() error{floor, agent}
		}
		for _, do := range order {
			if err := do(); err != nil {
				return nil, err
			}
		}
	}
	out.Agent.summarize()
	out.Path = path.shares()
	if out.Floor != nil {
		out.Floor.summarize()
		out.compare(b.Seed)
	}
	return out, nil
}

// tune finds the floor's best concurrency.
func (b *Bench) tune(ctx context.Context, out *Batch) error {
	best := math.Inf(1)
	for _, slots := range sweepOf() {
		if slots > out.Pods {
			break
		}
		b.Progress(fmt.Sprintf("floor, %d pods: trying %d at a time", out.Pods, slots))
		run, err := b.floorRun(ctx, out.Pods, slots)
		if err != nil {
			return err
		}
		out.Sweep = append(out.Sweep, Sweep{Slots: slots, MakespanMs: run.MakespanMs})
		if run.MakespanMs < best {
			best, out.Floor.Slots = run.MakespanMs, slots
		}
	}
	return nil
}

func (out *Batch) compare(seed uint64) {
	out.Ratios = map[string]Ratio{}
	for _, name := range []string{"p50Ms", "p99Ms", "makespanMs", "cpuMsPerPod", "callsPerPod", "heapBytesPerPod"} {
		if r := RatioOf(out.Agent.column(name), out.Floor.column(name), seed); !math.IsNaN(r.Value) {
			out.Ratios[name] = r
		}
	}
	agent, floor := out.Agent.Median.ByMethod, out.Floor.Median.ByMethod
	for _, calls := range []map[string]int{agent, floor} {
		for method := range calls {
			if a, f := agent[method], floor[method]; a != f {
				if out.Parity == nil {
					out.Parity = map[string][2]int{}
				}
				out.Parity[method] = [2]int{a, f}
			}
		}
	}
}

// agentRun starts n pods with a new agent and removes them.
func (b *Bench) agentRun(ctx context.Context, n int, what string) (run Run, path pathSum, err error) {
	b.Progress(what)
	err = b.withAgent(ctx, n, func(ctx context.Context, t *trial) (err error) {
		run, path, err = t.start(ctx, n, what)
		if err != nil {
			return err
		}
		began := time.Now()
		err = t.remove(ctx, what)
		run.RemoveMs = ms(time.Since(began))
		return err
	})
	return run, path, err
}

func (t *trial) start(ctx context.Context, n int, what string) (Run, pathSum, error) {
	if err := t.settled(ctx); err != nil {
		return Run{}, pathSum{}, err
	}
	m := t.session.meter()
	pods := t.bench.Shape.Make(n)
	steps := t.Stats().Steps
	m.begin()
	t.set(pods)
	if err := t.started(ctx, what); err != nil {
		return Run{}, pathSum{}, err
	}
	rate := float64(t.Stats().Steps - steps)
	if err := t.settled(ctx); err != nil {
		return Run{}, pathSum{}, err
	}
	m.end()
	took, last, path, err := t.watch.times()
	run := m.run(n, took, last)
	run.Steps = float64(t.Stats().Steps-steps) / float64(n)
	run.StepsPerS = rate / run.MakespanMs * 1000
	m.memory(&run, n)
	return run, path, err
}

// floorRun starts n pods with the floor, some at a time, and removes them.
func (b *Bench) floorRun(ctx context.Context, n, slots int) (run Run, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.Timeout, errTimeout)
	defer cancel()
	s, err := b.Backend.open(ctx, b.Shape.Images)
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	machine, err := b.Machine(Setup{Client: s.client, Simulated: s.simulated, Pods: n})
	if err != nil {
		return run, err
	}
	pods := b.Shape.Make(n)
	defer func() { err = errors.Join(err, sweep(ctx, s.client, machine, pods)) }()
	return b.startFloor(ctx, s, &floor{client: s.client, machine: machine, slots: slots}, pods)
}

func (b *Bench) startFloor(ctx context.Context, s *session, f *floor, pods []*v1.Pod) (Run, error) {
	m := s.meter()
	ready := make([]time.Time, len(pods))
	var last time.Time
	var mu sync.Mutex
	m.begin()
	err := f.start(ctx, pods, func(i int) {
		mu.Lock()
		defer mu.Unlock()
		ready[i] = time.Now()
		last = ready[i]
	})
	m.end()
	if err != nil {
		return Run{}, err
	}
	took := make([]float64, len(pods))
	for i := range ready {
		took[i] = ms(ready[i].Sub(m.began.at))
	}
	run := m.run(len(pods), took, last)
	m.memory(&run, len(pods))
	return run, nil
}

// meter measures one batch.
type meter struct {
	session    *session
	began      usage
	ended      usage
	before     map[string]int
	goroutines int
	heap       uint64
	callsInAll map[string]int
}

// meter returns a meter that has taken the state before the batch.
func (s *session) meter() *meter {
	return &meter{session: s, heap: liveHeap(), goroutines: runtime.NumGoroutine()}
}

func (m *meter) begin() {
	m.before = m.session.calls.snapshot()
	m.began = usageNow()
}

func (m *meter) end() {
	m.ended = usageNow()
	m.callsInAll = m.session.calls.since(m.before)
}

// run returns the figures of time and calls.
func (m *meter) run(n int, took []float64, last time.Time) Run {
	makespan := last.Sub(m.began.at)
	run := Run{
		P50Ms: Percentile(took, 50), P99Ms: Percentile(took, 99), MakespanMs: ms(makespan),
		PodsPerS: float64(n) / makespan.Seconds(), CPUMs: ms(m.ended.cpu-m.began.cpu) / float64(n), ByMethod: m.callsInAll,
	}
	for _, c := range m.callsInAll {
		run.Calls += float64(c) / float64(n)
	}
	return run
}

// memory adds what is held now that the pods are up.
func (m *meter) memory(run *Run, n int) {
	run.Heap = (float64(liveHeap()) - float64(m.heap)) / float64(n)
	run.Goroutines = float64(runtime.NumGoroutine()-m.goroutines) / float64(n)
	run.RSS = float64(rss())
}
