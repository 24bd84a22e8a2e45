package graph

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// down is what the teardown of a pod ends in.
type down struct {
	first   []dag.ID // what the stops come after
	observe dag.ID
	stops   []dag.ID
	ends    []dag.ID // sandbox stopped, volumes unmounted, cgroup removed
	unmount dag.ID
	sandbox dag.ID
}

// finish is the graph of a pod that completed, or that the node ends or
// rejected: everything of it that runs or is mounted is taken down, what can be
// read stays, unless it was evicted to make room. A verdict is kept before anything is stopped, so that an agent
// that is killed between the two makes the next one start nothing again; where
// it cannot be kept the pod ends all the same.
func (b *builder) finish() {
	record := b.record()
	d := down{}
	if b.s.Verdict != nil {
		d.first = []dag.ID{record}
	}
	b.down(&d, b.s.Phase == pod.Finished)
	n := dag.Node[pod.Facts]{ID: dag.ID{Kind: KindSettle}, Need: d.ends}
	if b.s.Phase == pod.Finishing {
		n.Key = b.life().key("settle")
	}
	settle := b.node(n, func(context.Context) (pod.Facts, error) { return pod.Facts{pod.Settled{}}, nil })
	b.prune(&plan{}, settle)
	b.node(dag.Node[pod.Facts]{ID: dag.ID{Kind: KindStatus}}, nil)
}

// remove is the graph of a pod that its source no longer wants: nothing of it
// is left at the end.
func (b *builder) remove() {
	d := down{}
	b.down(&d, false)
	containers := b.containersRemove(d)
	sandboxes := b.sandboxRemove(containers, d.sandbox)
	s := b.s
	dirs := b.node(dag.Node[pod.Facts]{
		ID: dag.ID{Kind: KindDirsRemove}, Need: []dag.ID{d.unmount, containers}, Owns: "dirs", Atomic: true,
		Key: b.life().key("remove directories"), Class: KindDirs,
	}, plain(func(ctx context.Context) error { return b.work.Dirs.Remove(ctx, s) }))
	record := b.record()
	b.node(dag.Node[pod.Facts]{
		ID: dag.ID{Kind: KindForget}, Need: append(d.ends, containers, sandboxes, dirs, d.observe), After: []dag.ID{record},
		Key: b.life().key("forget"), Owns: "record",
	}, func(ctx context.Context) (pod.Facts, error) {
		if err := b.work.Records.Delete(ctx, pod.KeyOf(s.UID())); err != nil {
			return nil, err
		}
		return pod.Facts{pod.Gone{At: time.Now()}}, nil
	})
	b.node(dag.Node[pod.Facts]{ID: dag.ID{Kind: KindStatus}}, nil)
}

// down stops containers, sidecars after the others and in reverse order, then
// the sandbox, then unmounts, then removes the cgroup. finished: all of that
// was done before.
func (b *builder) down(d *down, finished bool) {
	d.observe = b.observe()
	apps, sidecars := b.teardownOrder()
	for _, name := range apps {
		d.stops = append(d.stops, b.end(name, d.first, d.observe))
	}
	for _, name := range sidecars {
		d.stops = append(d.stops, b.end(name, slices.Concat(d.first, d.stops), d.observe))
	}
	d.sandbox = b.sandboxStop("", append(slices.Clone(d.stops), d.observe))
	key := b.life().key
	if finished {
		key = func(string) dag.Key { return dag.Key{} }
	}
	s := b.s
	d.unmount = b.node(dag.Node[pod.Facts]{
		ID: dag.ID{Kind: KindUnmount}, Need: append(b.mounting(), d.sandbox), Owns: "volumes", Atomic: true,
		Key: key("unmount all volumes"), Class: "mount",
	}, plain(func(ctx context.Context) error { return b.work.Volumes.Unmount(ctx, s) }))
	cgroup := b.node(dag.Node[pod.Facts]{
		ID: dag.ID{Kind: KindCgroupRemove}, Need: []dag.ID{d.unmount}, Owns: "cgroup", Atomic: true,
		Key: key("remove cgroup"), Class: KindCgroup,
	}, plain(func(ctx context.Context) error { return b.work.Cgroups.Remove(ctx, s) }))
	d.ends = []dag.ID{d.sandbox, d.unmount, cgroup}
}

// mounting are the volumes, also those of earlier specs, with nothing to do: a mount that was under way when
// the pod's end came goes on, and only after it can all of them be undone.
func (b *builder) mounting() []dag.ID {
	p := b.s.Pod()
	if p == nil {
		return nil
	}
	ids := make([]dag.ID, 0, len(p.Spec.Volumes)+len(b.s.Volumes)+1)
	for i := range p.Spec.Volumes {
		ids = append(ids, b.node(volumeNode(p.Spec.Volumes[i].Name), nil))
	}
	for _, name := range b.s.Volumes {
		if !slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool { return v.Name == name }) {
			ids = append(ids, b.node(volumeNode(name), nil))
		}
	}
	return ids
}

// life begins the task keys of what is done once in a life of the UID: another
// life has it all to do again.
func (b *builder) life() sum { return newSum().num(uint64(b.s.Incarnation)) }

// teardownOrder lists regular and unknown containers, and sidecars from the
// last to the first.
func (b *builder) teardownOrder() (apps, sidecars []string) {
	if p := b.s.Pod(); p != nil {
		for i := range slices.Backward(p.Spec.InitContainers) {
			if c := &p.Spec.InitContainers[i]; pod.Sidecar(c) {
				sidecars = append(sidecars, c.Name)
			}
		}
	}
	apps = slices.DeleteFunc(b.names(), func(n string) bool { return slices.Contains(sidecars, n) })
	return apps, sidecars
}

// end stops the container of that name that lives, within the pod's deadline.
func (b *builder) end(name string, after []dag.ID, observe dag.ID) dag.ID {
	for _, c := range b.s.Containers {
		if c.Name == name && c.Live() {
			st := stop{c: c, why: "Stopping container " + name, deadline: b.deadline(), after: after, need: observe}
			st.hold = b.preStop(c, st.deadline, observe)
			if spec := b.specOf(name); spec != nil {
				b.probes(spec, c, true)
			}
			return b.stop(st, name)
		}
	}
	return b.stop(stop{after: after, need: observe}, name)
}

func (b *builder) containersRemove(d down) dag.ID {
	n := dag.Node[pod.Facts]{
		ID: dag.ID{Kind: KindContainersRemove}, Need: append(slices.Clone(d.stops), d.ends...), Owns: "dead", Atomic: true, Class: "teardown",
	}
	var dead []pod.Container
	sum := newSum()
	for _, c := range b.s.Containers {
		if !c.Gone {
			dead = append(dead, c)
			sum = sum.str(c.ID)
		}
	}
	if len(dead) == 0 {
		return b.node(n, nil)
	}
	n.Key = sum.key("remove container " + short(dead[0].ID) + more(len(dead)-1))
	return b.effectNode(n, b.removeContainers(dead))
}

func (b *builder) sandboxRemove(needs ...dag.ID) dag.ID {
	n := dag.Node[pod.Facts]{ID: dag.ID{Kind: KindSandboxRemove}, Need: needs, Owns: ownSandbox, Atomic: true, Class: "teardown"}
	var ids []string
	sum := newSum()
	for _, sb := range b.s.Sandboxes {
		if !sb.Gone {
			ids = append(ids, sb.ID)
			sum = sum.str(sb.ID)
		}
	}
	if len(ids) == 0 {
		return b.node(n, nil)
	}
	n.Key = sum.key("remove sandbox " + short(ids[0]) + more(len(ids)-1))
	return b.effectNode(n, func(ctx context.Context) (pod.Facts, error) { return b.work.Sandboxes.Remove(ctx, ids) })
}
