package graph

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/hook"
)

// postStart runs a container's postStart hook once, beside its entrypoint. One
// that ran before this agent began has its hook now if an agent of this kind
// made it, and the state file does not tell the hook's end: so a hook that is
// cut off by the end of the agent runs again.
func (b *builder) postStart(u *unit, container dag.ID) (dag.ID, bool) {
	if u.spec.Lifecycle == nil || u.spec.Lifecycle.PostStart == nil {
		return dag.ID{}, false
	}
	n := dag.Node[pod.Facts]{
		ID: dag.ID{Kind: KindPostStart, Of: u.spec.Name}, Need: []dag.ID{container}, Owns: "hook/" + u.spec.Name, Class: "hook",
	}
	c := u.last
	if !c.Live() || c.State != pod.Running || b.hookEnded(c.ID, hook.PostStart) || !c.Hooked && c.StartedAt.Before(b.Config.Started) {
		return b.node(n, nil), true
	}
	n.Key = newSum().str(c.ID).key("run the postStart hook")
	return b.node(n, b.hook(u.spec, c.ID, hook.PostStart)), true
}

// preStop runs a container's preStop hook once, until the deadline of its stop
// at most, and returns what the stop is held by meanwhile. A shorter deadline
// moves the hold and does not run the hook again.
func (b *builder) preStop(c pod.Container, deadline time.Time, observe dag.ID) dag.Hold {
	spec := b.specOf(c.Name)
	if spec == nil || spec.Lifecycle == nil || spec.Lifecycle.PreStop == nil {
		return dag.Hold{}
	}
	n := dag.Node[pod.Facts]{
		ID: dag.ID{Kind: KindPreStop, Of: c.Name}, Need: []dag.ID{observe}, Owns: "hook/" + c.Name, Class: "hook",
	}
	if c.State != pod.Running || b.hookEnded(c.ID, hook.PreStop) || !b.Now.Before(deadline) {
		b.node(n, nil)
		return dag.Hold{}
	}
	n.Key = newSum().str(c.ID).key("run the preStop hook")
	b.node(n, b.hook(spec, c.ID, hook.PreStop))
	return dag.Hold{Until: deadline, Why: "the preStop hook is running"}
}

func (b *builder) hook(spec *v1.Container, id string, kind hook.Kind) run {
	s, key := b.s, pod.HookKey{ID: id, Kind: string(kind)}
	return func(ctx context.Context) (pod.Facts, error) {
		err := b.work.Hooks.Run(ctx, s, spec, id, kind)
		ended := pod.HookEnded{Hook: key}
		if err != nil {
			if errors.Is(err, hook.ErrUnended) {
				return nil, dag.RetryAfter(err, time.Second) // or the next agent runs it
			}
			ended.Failure = err.Error()
		}
		return pod.Facts{ended}, err
	}
}

func (b *builder) hookEnded(id string, kind hook.Kind) bool {
	_, ok := b.s.Hooks[pod.HookKey{ID: id, Kind: string(kind)}]
	return ok
}

func (b *builder) hookFailed(id string, kind hook.Kind) bool {
	return b.s.Hooks[pod.HookKey{ID: id, Kind: string(kind)}].Failure != ""
}

// specOf returns the container of that name in the pod's spec, or nil.
func (b *builder) specOf(name string) *v1.Container {
	p := b.s.Pod()
	if p == nil {
		return nil
	}
	for _, list := range [2][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
