package graph

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/probe"
)

// nextCheck is the reason of a hold until the next check of a probe.
const nextCheck = "next check"

// lookup returns what is known about the probes of a container name.
func lookup(s *pod.State, name string) probe.Lookup {
	return func(k probe.Kind) probe.State { return s.Probes[pod.ProbeKey{Container: name, Kind: string(k)}] }
}

// Verdicts tells what the probes of a running container found.
func Verdicts(s *pod.State) func(c *v1.Container, id string) (started, ready bool) {
	return func(c *v1.Container, id string) (bool, bool) { return probe.Verdicts(c, id, lookup(s, c.Name)) }
}

func (b *builder) started(c *v1.Container, id string) bool {
	started, _ := probe.Verdicts(c, id, lookup(b.s, c.Name))
	return started
}

// probes adds one stage per probe of a container that runs. Each is held until
// the next check is due; a check that changes nothing makes no other stage
// run. ending: only readiness is checked on.
func (b *builder) probes(spec *v1.Container, c pod.Container, ending bool) {
	for _, kind := range probe.Kinds() {
		if p := kind.Of(spec); p != nil {
			b.probe(spec, probe.In{
				Kind: kind, Probe: p, ID: c.ID, StartedAt: c.StartedAt, Running: c.State == pod.Running && c.Live(),
				Started: probe.StartedAt(spec, c.ID, c.StartedAt, lookup(b.s, spec.Name)), Ending: ending, Spread: b.Config.Started,
			})
		}
	}
}

func (b *builder) probe(spec *v1.Container, in probe.In) {
	key := pod.ProbeKey{Container: spec.Name, Kind: string(in.Kind)}
	known := b.s.Probes[key]
	n := dag.Node[pod.Facts]{
		ID: dag.ID{Kind: KindProbe, Of: spec.Name + "/" + key.Kind}, Owns: "probe/" + spec.Name + "/" + key.Kind, Class: "probe-net",
	}
	if in.Probe.Exec != nil {
		n.Class = "probe-exec"
	}
	due := probe.Next(known, in, probe.Result{}, b.Now).Due
	if due.IsZero() {
		b.node(n, nil)
		return
	}
	n.Key = newSum().str(in.ID).num(uint64(due.UnixNano())).key("check")
	n.Hold = dag.Hold{Until: due, Why: nextCheck, OnTime: true}
	if known.ID != in.ID || known.Verdict != probe.Passed && in.Kind != probe.Liveness {
		n.Hold.Why, n.Hold.OnTime = "the "+key.Kind+" probe has not passed; "+nextCheck, false
	}
	s := b.s
	b.node(n, func(ctx context.Context) (pod.Facts, error) {
		r := b.work.Probes.Check(ctx, s, spec, in.ID, in.Kind)
		if r.Outcome == probe.None {
			return nil, context.Cause(ctx)
		}
		return pod.Facts{pod.Probed{Probe: key, State: probe.Next(known, in, r, time.Now())}}, nil
	})
}
