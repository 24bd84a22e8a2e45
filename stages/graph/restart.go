package graph

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/hook"
	"github.com/flowlet/flowlet/stages/probe"
)

// restartPause keeps a container that ends at once, and makes all of its pod
// start anew, from doing so without a pause: there is no crash-loop back-off.
const restartPause = time.Second

// triggers are the containers whose end makes all of the pod start anew, by a
// rule with the action RestartAllContainers, until all were reset. Rules are
// about exits: what a probe, a hook or a new image ended is no trigger.
func (b *builder) triggers() (ended []pod.Container) {
	for spec := range b.specs() {
		c, ok := b.s.Newest(spec.Name)
		if !ok || !pod.RestartsAll(spec, c) || b.outdated(spec, c) || b.hookFailed(c.ID, hook.PostStart) {
			continue
		}
		if why, _ := probe.Condemned(spec, c.ID, lookup(b.s, spec.Name)); why == "" {
			ended = append(ended, c)
		}
	}
	return ended
}

// specs are the containers of the pod's spec that start with it, in their order.
func (b *builder) specs() func(yield func(*v1.Container) bool) {
	return func(yield func(*v1.Container) bool) {
		p := b.s.Pod()
		for _, list := range [2][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// anew is the stop of a container that has to go because all start anew: at
// once, without its hook. Its deadline is over.
func (p *plan) anew(c pod.Container) stop {
	why := "Container " + c.Name + " is stopped, because all containers of the pod are restarted"
	return stop{c: c, why: why, deadline: p.triggers[0].Exit.FinishedAt}
}

// restartAll removes all containers once none of them runs, so that they all
// start anew in the sandbox that is there. Those whose end was the reason go
// last, and the state file is written first: an agent that is killed meanwhile
// finds the reason again in one of the two.
func (b *builder) restartAll(p *plan, record dag.ID, needs []dag.ID) []dag.ID {
	ruled := func(c *v1.Container) bool {
		return slices.ContainsFunc(c.RestartPolicyRules, func(r v1.ContainerRestartRule) bool {
			return r.Action == v1.ContainerRestartRuleActionRestartAllContainers
		})
	}
	n := dag.Node[pod.Facts]{ID: dag.ID{Kind: KindRestartAll}, Need: needs, After: []dag.ID{record}, Owns: "dead", Class: "teardown", Atomic: true}
	if !p.restarting() {
		for spec := range b.specs() {
			if ruled(spec) {
				n.Owns = ""
				return []dag.ID{b.node(n, nil)}
			}
		}
		return nil
	}
	d := newSum()
	for _, c := range p.triggers {
		d = d.str(c.ID)
	}
	first := p.triggers[0]
	n.Key = d.key("restart all containers: " + first.Name + " ended with exit code " + itoa(uint32(first.Exit.Code)))
	if !first.StartedAt.After(b.Now) { // the clock may have been set back
		n.Hold = dag.Hold{Until: first.StartedAt.Add(restartPause), Why: "container " + first.Name + " ended within a second"}
	}
	dead, ids := b.toReset(p)
	remove := b.removeContainers(dead)
	return []dag.ID{b.effectNode(n, func(ctx context.Context) (pod.Facts, error) {
		facts, err := remove(ctx)
		if err != nil {
			return facts, err
		}
		return append(facts, pod.Reset{IDs: ids}), nil
	})}
}

// toReset lists the containers of the spec, the triggers last. The newest of a
// name keeps its log, as that of the attempt before; older ones go with theirs.
func (b *builder) toReset(p *plan) (dead []pod.Container, ids []string) {
	trigger := func(c pod.Container) bool {
		return slices.ContainsFunc(p.triggers, func(t pod.Container) bool { return t.ID == c.ID })
	}
	newest := map[string]bool{}
	for _, c := range b.s.Containers {
		if b.specOf(c.Name) == nil {
			continue
		}
		ids = append(ids, c.ID)
		if !newest[c.Name] {
			newest[c.Name], c.Reset = true, true
		} else {
			c.Reset = false
		}
		if !trigger(c) {
			dead = append(dead, c)
		}
	}
	for _, c := range p.triggers {
		c.Reset = true
		dead = append(dead, c)
	}
	return dead, ids
}
