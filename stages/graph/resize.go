package graph

import (
	"context"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// resize gives a pod what its changed spec asks for, when there is room, and
// then changes what runs. It comes after what is being stopped; a container
// whose policy says so is stopped, and has the new resources when it is started
// again. What runs has been seen, and what the pod was given before is in its
// state file, first.
func (b *builder) resize(p *plan, observe, record dag.ID, stops []dag.ID) {
	if b.s.Spec.Asked == nil && b.s.Resize == nil {
		return
	}
	n := dag.Node[pod.Facts]{ID: dag.ID{Kind: KindResize}, Need: []dag.ID{observe}, After: slices.Concat(stops, []dag.ID{record}), Owns: "resources", Class: "cgroup", Atomic: true}
	if asked := b.s.Spec.Asked; asked != nil {
		b.allocate(n, asked)
		return
	}
	r := b.s.Resize
	d := newSum().num(uint64(r.At.UnixNano()))
	todo := r.Pod
	for _, name := range slices.Sorted(maps.Keys(r.Left)) {
		if spec := b.specOf(name); spec == nil || !r.MustRestart(spec, b.s.Allocation) {
			d, todo = d.str(name).str(r.Left[name]), true
		}
	}
	if !todo {
		b.node(n, nil) // only restarts are left
		return
	}
	n.Key = d.key("resize to what was allocated")
	s, sandbox := b.s, p.sandbox.ID
	b.node(n, func(ctx context.Context) (pod.Facts, error) { return b.work.Resizer.Apply(ctx, s, sandbox) })
}

func (b *builder) allocate(n dag.Node[pod.Facts], asked *v1.Pod) {
	n.Key = amounts(newSum(), pod.AllocationOf(asked)).key("allocate what the changed spec asks for")
	if ok, reason, message := b.World.Resizable(b.s); !ok {
		n.Hold.Why = reason + ": " + message
	}
	s := b.s
	b.node(n, func(ctx context.Context) (pod.Facts, error) { return b.work.Admission.Resize(ctx, s) })
}

// resizedByRestart reports whether a running container has to be started anew
// to have what it was given.
func (b *builder) resizedByRestart(spec *v1.Container, c pod.Container) bool {
	r := b.s.Resize
	return r != nil && r.Left[spec.Name] == c.ID && r.MustRestart(spec, b.s.Allocation)
}

func amounts(d sum, a *pod.Allocation) sum {
	one := func(d sum, a pod.Amounts) sum {
		return d.num(uint64(a.CPURequest)).num(uint64(a.CPULimit)).num(uint64(a.MemoryRequest)).num(uint64(a.MemoryLimit))
	}
	d = one(d, a.Pod)
	for _, name := range slices.Sorted(maps.Keys(a.Containers)) {
		d = one(d.str(name), a.Containers[name])
	}
	return d
}

// madeWith tells what a container was made with: the pod may have been given
// something else meanwhile.
func madeWith(s *pod.State, name string, facts pod.Facts) pod.Facts {
	for _, f := range facts {
		if o, ok := f.(pod.Observed); ok && s.Allocation != nil && len(o.Containers) == 1 {
			return append(facts, pod.MadeWith{Name: name, ID: o.Containers[0].ID, With: s.Allocation, At: time.Now()})
		}
	}
	return facts
}
