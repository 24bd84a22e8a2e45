package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/sourcegraph/conc/pool"
	v1 "k8s.io/api/core/v1"
)

// Bench is how things are measured. It is not changed once in use.
type Bench struct {
	Backend Backend
	Shape   Shape
	New     Factory
	// Machine is what has to be made on the node besides the runtime's part;
	// on a simulated runtime nothing.
	Machine func(Setup) (Machine, error)
	Runs    int           // of which the medians are reported
	Timeout time.Duration // of one batch
	// Progress gets a line now and then while a measurement runs.
	Progress func(line string)
	Seed     uint64 // of the intervals
}

// maxLoad is the load average above which figures are not to be trusted.
const maxLoad = 0.3

func (b *Bench) head(ctx context.Context, schema string) (Head, error) {
	h := Head{
		Schema: schema, Date: time.Now().UTC().Format(time.RFC3339), Shape: b.Shape, Warnings: []string{},
		Host: Host{CPUs: runtime.GOMAXPROCS(0), Go: runtime.Version(), Load: load()},
	}
	if h.Host.Load > maxLoad {
		h.warn(fmt.Sprintf("the load average was %.2f before the first run: other work disturbs what is measured; trust ratios only", h.Host.Load))
	}
	s, err := b.Backend.open(ctx, b.Shape.Images)
	if err != nil {
		return h, err
	}
	h.Runtime = Runtime{Endpoint: b.Backend.Endpoint, Name: s.name, Version: s.version, InProcess: s.sim != nil}
	for method, d := range b.Backend.Latency {
		if h.Runtime.LatencyMs == nil {
			h.Runtime.LatencyMs = map[string]float64{}
		}
		h.Runtime.LatencyMs[method] = ms(d)
	}
	for _, w := range h.Warnings {
		b.Progress("warning: " + w)
	}
	return h, s.close()
}

func (h *Head) warn(text string) { h.Warnings = append(h.Warnings, text) }

// trial is an agent that runs and that pods can be given to.
type trial struct {
	System

	bench   *Bench
	session *session
	watch   *watch
	pods    []*v1.Pod // given to it
}

// Causes of ends.
var (
	errMeasured = errors.New("the measurement is over")
	errEnded    = errors.New("the agent ended by itself")
	errTimeout  = errors.New("the time for one batch (--timeout) is over")
)

// withAgent runs an agent with room for n pods while do does its work. What do
// left in the runtime is removed once the agent has ended.
func (b *Bench) withAgent(ctx context.Context, n int, do func(context.Context, *trial) error) (err error) {
	s, err := b.Backend.open(ctx, b.Shape.Images)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	machine, err := b.Machine(Setup{Client: s.client, Simulated: s.simulated, Pods: n})
	if err != nil {
		return err
	}
	t := &trial{bench: b, session: s, watch: newWatch()}
	t.System, err = b.New(Setup{Client: s.client, Simulated: s.simulated, Pods: n, Hooks: t.watch.hooks()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sweep(ctx, s.client, machine, t.pods)) }()
	return t.run(ctx, do)
}

func (t *trial) run(ctx context.Context, do func(context.Context, *trial) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(errMeasured)
	up := make(chan struct{})
	p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	p.Go(func(ctx context.Context) error {
		if err := t.Run(ctx, func() { close(up) }); err != nil {
			return err
		}
		if ctx.Err() == nil {
			return errEnded
		}
		return nil
	})
	p.Go(func(ctx context.Context) error {
		defer stop(errMeasured)
		select {
		case <-up:
			return do(ctx, t)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	return p.Wait()
}

// set gives all pods to the agent, as its source would: one event each.
func (t *trial) set(pods []*v1.Pod) {
	t.pods = append(t.pods, pods...)
	for _, p := range pods {
		t.watch.given(p.UID, time.Now())
		t.Set(p)
	}
}

// settled waits until the agent has nothing more to do: it does not look at
// pods, run stages or call the runtime. A runtime that kept events for the
// next reader makes a new agent do all that.
func (t *trial) settled(ctx context.Context) error {
	const every, calm = 20 * time.Millisecond, 5
	tick := time.NewTicker(every)
	defer tick.Stop()
	last, since, calls := t.Stats(), 0, t.session.calls.total()
	for since < calm {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		now, made := t.Stats(), t.session.calls.total()
		if now.Runs == last.Runs && now.Steps == last.Steps && now.Dirty == 0 && made == calls {
			since++
		} else {
			since = 0
		}
		last, calls = now, made
	}
	return nil
}

// started waits until the agent has started all pods it was given.
func (t *trial) started(ctx context.Context, what string) error {
	return t.wait(ctx, goal{what: what, word: "ready", n: len(t.pods), got: t.watch.startedCount})
}

// remove takes all pods from the agent and waits until they are gone.
func (t *trial) remove(ctx context.Context, what string) error {
	for _, p := range t.pods {
		t.Unset(p)
	}
	return t.wait(ctx, goal{what: what, word: "removed", n: len(t.pods), got: t.watch.goneCount})
}

// wait waits for a goal; the error says what keeps the agent from it.
func (t *trial) wait(ctx context.Context, g goal) error {
	ctx, cancel := context.WithTimeoutCause(ctx, t.bench.Timeout, errTimeout)
	defer cancel()
	g.progress = t.bench.Progress
	err := t.watch.wait(ctx, g)
	if e, ok := t.System.(Explainer); ok && errors.Is(err, errTimeout) {
		err = fmt.Errorf("%w\n%s", err, e.Why())
	}
	return err
}
