package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"time"
)

// SyncOptions say what the sync workload does.
type SyncOptions struct {
	Pods int           // settled pods
	For  time.Duration // each kind of sync
}

// Sync starts pods, lets them settle, and measures what it costs to look at
// them again.
func (b *Bench) Sync(ctx context.Context, o SyncOptions) (*SyncReport, error) {
	head, err := b.head(ctx, SyncSchema)
	r := &SyncReport{Head: head, Pods: o.Pods}
	if err != nil {
		return r, err
	}
	what := fmt.Sprintf("agent, %d pods", o.Pods)
	b.Progress(what + ": starting")
	err = b.withAgent(ctx, o.Pods, func(ctx context.Context, t *trial) error {
		if _, ok := t.System.(Syncer); !ok {
			return errors.New("this agent does not take events about settled pods")
		}
		t.set(b.Shape.Make(o.Pods))
		if err := t.started(ctx, what); err != nil {
			return err
		}
		for _, kind := range t.kinds() {
			b.Progress(what + ": " + kind.what)
			k, err := t.sync(ctx, kind, o.For)
			if err != nil {
				return err
			}
			r.Kinds = append(r.Kinds, k)
		}
		return t.remove(ctx, what)
	})
	return r, err
}

// kind is one kind of sync: do makes an event about the i-th pod.
type kind struct {
	name, what string
	steps      bool // each event leads to a step
	do         func(i, round int)
}

func (t *trial) kinds() []kind {
	s, _ := t.System.(Syncer)
	return []kind{
		{"resync", "the same spec again", false, func(i, _ int) { s.Resync(t.pods[i].UID) }},
		{"relist", "the same look at the runtime again", false, func(i, _ int) { s.Relist(t.pods[i].UID) }},
		{"step", "a full step: graph, decision, status", true, func(i, _ int) { s.Step(t.pods[i].UID) }},
		{"annotation", "an annotation changed", true, t.annotate},
	}
}

// annotate sets a pod with a changed annotation and nothing else.
func (t *trial) annotate(i, round int) {
	p := t.pods[i].DeepCopy()
	p.Annotations["flowlet.dev/bench-round"] = strconv.Itoa(round)
	t.Set(p)
}

// sync makes events about all pods in turn for some time.
func (t *trial) sync(ctx context.Context, k kind, d time.Duration) (SyncKind, error) {
	if err := t.settled(ctx); err != nil {
		return SyncKind{}, err
	}
	runtime.GC()
	var before, after runtime.MemStats
	calls, stats := t.session.calls.snapshot(), t.Stats()
	runtime.ReadMemStats(&before)
	began := usageNow()
	events, err := t.rounds(ctx, k, began.at.Add(d))
	ended := usageNow()
	runtime.ReadMemStats(&after)
	if err != nil {
		return SyncKind{}, err
	}
	now := t.Stats()
	n := float64(events)
	out := SyncKind{
		Kind: k.name, What: k.what, Events: events, PerS: n / ended.at.Sub(began.at).Seconds(),
		CPUMicro: ms(ended.cpu-began.cpu) * 1000 / n, Allocs: float64(after.Mallocs-before.Mallocs) / n,
		Bytes: float64(after.TotalAlloc-before.TotalAlloc) / n,
		Steps: now.Steps - stats.Steps, Runs: now.Runs - stats.Runs,
	}
	for _, c := range t.session.calls.since(calls) {
		out.Calls += c
	}
	return out, nil
}

// rounds makes events until a time; a kind that leads to steps is given time
// to make them, so that none is merged with the next.
func (t *trial) rounds(ctx context.Context, k kind, until time.Time) (events uint64, err error) {
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	for round := 1; time.Now().Before(until); round++ {
		steps := t.Stats().Steps
		for i := range t.pods {
			k.do(i, round)
		}
		events += uint64(len(t.pods))
		if ctx.Err() != nil {
			return events, context.Cause(ctx)
		}
		for k.steps && t.Stats().Steps < steps+uint64(len(t.pods)) {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return events, context.Cause(ctx)
			}
		}
	}
	return events, nil
}
