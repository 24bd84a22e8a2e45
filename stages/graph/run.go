package graph

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/hook"
	"github.com/flowlet/flowlet/stages/probe"
)

// run is the graph of a pod that is to be made and kept running. Read it from
// top to bottom: a stage needs only what was added above it.
func (b *builder) run() {
	p := b.plan()

	observe := b.observe()
	admit := b.admit(observe)
	deadline := b.activeDeadline()
	cgroup := b.cgroup(&p, admit)
	dirs := b.dirs(&p, admit)
	volumes := b.volumes(&p, dirs)
	images := b.images(&p)

	stops := b.stops(&p, observe)
	stopped := values(stops, b.names())
	old := b.sandboxStop(p.sandbox.ID, stopped)
	sandbox := b.sandbox(&p, deadline, observe, admit, cgroup, dirs, old)
	record := b.record()
	restart := b.restartAll(&p, record, slices.Concat(stopped, []dag.ID{observe}))

	inputs := inputs{
		after: deadline, restart: restart, record: record, places: []dag.ID{cgroup, dirs}, sandbox: sandbox,
		volumes: volumes, images: images, stops: stops,
	}
	for i := range p.units {
		b.container(&p, &p.units[i], &inputs)
	}
	b.resize(&p, observe, record, stopped)
	b.prune(&p, observe)
	b.node(dag.Node[pod.Facts]{ID: dag.ID{Kind: KindStatus}}, nil)
}

// found is the graph of a pod that the runtime or a state file shows and that
// no source has named: it belongs to the source it came from.
func (b *builder) found() {
	observe := b.observe()
	n := dag.Node[pod.Facts]{
		ID: dag.ID{Kind: KindClaim}, Need: []dag.ID{observe}, Key: newSum().key("take down: no source wants it"),
	}
	switch src := b.s.Source(); {
	case src == "":
		n.Hold.Why = "it names no source: left alone"
	case !b.World.Configured(src):
		n.Hold.Why = "source " + src + " is not configured here: left alone"
	case !b.World.Synced(src):
		n.Hold.Why = "source " + src + " has not told all it knows yet"
	}
	b.node(n, func(context.Context) (pod.Facts, error) { return pod.Facts{pod.Claimed{At: time.Now()}}, nil })
}

// admit has work until the node has decided. It is held while another pod of
// that name is there and while the room it needs is still being left.
func (b *builder) admit(observe dag.ID) dag.ID {
	n := dag.Node[pod.Facts]{ID: dag.ID{Kind: KindAdmit}, Need: []dag.ID{observe}, Owns: "admission"}
	if b.s.Admission.Done {
		return b.node(n, nil)
	}
	n.Key = b.life().key("admit")
	if src := b.s.Source(); !b.World.Synced(src) {
		n.Hold.Why = "source " + src + " has not told all it knows yet: running pods keep their room"
	} else if holder, held := b.World.NameHolder(b.s); held {
		n.Hold.Why = "name lock: another pod " + b.s.FullName() + " (UID " + string(holder) + ") is still here"
	} else if ok, waiting := b.World.Room(b.s); !ok && len(waiting) > 0 {
		n.Hold.Why = "no room until these pods are gone: " + strings.Join(waiting, ", ")
	}
	s := b.s
	return b.node(n, func(ctx context.Context) (pod.Facts, error) { return b.work.Admission.Admit(ctx, s) })
}

// cgroup and dirs are what nobody reports: they are ensured whenever something
// of the pod is about to be made.
func (b *builder) cgroup(p *plan, admit dag.ID) dag.ID {
	spec := b.s.Spec
	n := dag.Node[pod.Facts]{
		ID: dag.ID{Kind: KindCgroup}, Need: []dag.ID{admit}, Owns: "cgroup", Atomic: true, Key: p.demand.key("ensure cgroup"),
	}
	return b.node(n, plain(func(ctx context.Context) error { return b.work.Cgroups.Ensure(ctx, spec.Pod) }))
}

func (b *builder) dirs(p *plan, admit dag.ID) dag.ID {
	spec := b.s.Spec
	n := dag.Node[pod.Facts]{
		ID: dag.ID{Kind: KindDirs}, Need: []dag.ID{admit}, Owns: "dirs", Atomic: true, Key: p.demand.key("ensure directories"),
	}
	return b.node(n, plain(func(ctx context.Context) error { return b.work.Dirs.Ensure(ctx, spec.Pod) }))
}

// volumes are those that a container mounts.
func (b *builder) volumes(p *plan, dirs dag.ID) map[string]dag.ID {
	spec := b.s.Spec
	ids := make(map[string]dag.ID, len(spec.Pod.Spec.Volumes))
	for i := range spec.Pod.Spec.Volumes {
		v := &spec.Pod.Spec.Volumes[i]
		demand := p.demandOf(func(c *v1.Container) bool { return v.Image == nil && uses(c, v.Name) }) // images are mounted by the runtime
		n := volumeNode(v.Name)
		if v.NFS != nil {
			n.Class += "/" + v.NFS.Server // one that hangs holds up nobody else's volumes
		}
		n.Need, n.Key = []dag.ID{dirs}, demand.key("ensure volume")
		if demand == 0 && tells(v) && b.mounted(v.Name) {
			n.Key = newSum().num(spec.Sum).key("write what the spec says now")
		}
		ids[v.Name] = b.node(n, plain(func(ctx context.Context) error { return b.work.Volumes.Ensure(ctx, spec.Pod, v) }))
	}
	return ids
}

// tells reports whether a volume has files about its own pod.
func tells(v *v1.Volume) bool { return v.DownwardAPI != nil || v.Projected != nil }

// mounted reports whether a running container has the volume.
func (b *builder) mounted(volume string) bool {
	return slices.ContainsFunc(b.s.Containers, func(c pod.Container) bool {
		spec := b.specOf(c.Name)
		return c.Live() && spec != nil && uses(spec, volume)
	})
}

func volumeNode(name string) dag.Node[pod.Facts] {
	return dag.Node[pod.Facts]{ID: dag.ID{Kind: KindVolume, Of: name}, Owns: "volume/" + name, Atomic: true, Class: "mount"}
}

// uses reports whether a container mounts the volume or reads a variable from it.
func uses(c *v1.Container, volume string) bool {
	for i := range c.VolumeMounts {
		if c.VolumeMounts[i].Name == volume {
			return true
		}
	}
	return slices.ContainsFunc(c.Env, func(e v1.EnvVar) bool {
		return e.ValueFrom != nil && e.ValueFrom.FileKeyRef != nil && e.ValueFrom.FileKeyRef.VolumeName == volume
	})
}

// sandbox needs the volumes as little as the images: containers do.
func (b *builder) sandbox(p *plan, after []dag.ID, needs ...dag.ID) dag.ID {
	n := dag.Node[pod.Facts]{ID: dag.ID{Kind: KindSandbox}, Need: needs, After: after, Owns: ownSandbox, Atomic: true}
	if p.usable {
		return b.node(n, nil)
	}
	s, attempt := b.s, p.attempt
	n.Key = newSum().num(uint64(attempt)).num(s.Spec.Sum).key("make sandbox, attempt " + itoa(attempt))
	if !s.Spec.Pod.Spec.HostNetwork {
		if ok, why := b.World.NetworkReady(); !ok {
			n.Hold.Why = "network is not ready: " + why
		}
	}
	if last, ok := s.Sandbox(); ok && n.Hold.Why == "" && !last.CreatedAt.After(b.Now) { // the clock may have been set back
		n.Hold = dag.Hold{Until: last.CreatedAt.Add(time.Second), Why: "the last sandbox is less than a second old"}
	}
	return b.effectNode(n, b.unlessRemoved(func(ctx context.Context) (pod.Facts, error) {
		return b.work.Sandboxes.Create(ctx, s, attempt)
	}))
}

// stops takes down running containers that are not as the spec wants them.
func (b *builder) stops(p *plan, observe dag.ID) map[string]dag.ID {
	ids := map[string]dag.ID{}
	for _, name := range b.names() {
		st := b.unwanted(p, name)
		st.need, st.owns = observe, p.restarting()
		ids[name] = b.stop(b.withHook(st), name)
	}
	return ids
}

// withHook gives a stop that is not the pod's end time for the preStop hook:
// one grace period from when the reason for it came up.
func (b *builder) withHook(st stop) stop {
	if st.why == "" || st.since.IsZero() {
		return st
	}
	deadline := st.since.Add(cmp.Or(st.grace, b.s.Grace()))
	if spec := b.specOf(st.c.Name); spec.Lifecycle != nil && spec.Lifecycle.PreStop != nil {
		st.deadline = deadline
	}
	st.hold = b.preStop(st.c, deadline, st.need)
	return st
}

// unwanted returns the stop of a container that must not run as it does.
func (b *builder) unwanted(p *plan, name string) stop {
	spec := b.specOf(name)
	newest, _ := b.s.Newest(name)
	for _, c := range b.s.Containers {
		if c.Name != name || !c.Live() {
			continue
		}
		switch {
		case spec == nil && !ephemeral(b.s, name):
			return stop{c: c, why: "not in the pod's spec"}
		case p.restarting() && spec != nil:
			return p.anew(c)
		case c.Reset: // it was taken for removed
			return stop{c: c, why: "all containers of the pod were restarted"}
		case !p.usable || c.SandboxID != p.sandbox.ID:
			return stop{c: c, why: "its sandbox is not usable"}
		case c.ID != newest.ID:
			return stop{c: c, why: "a newer attempt exists"}
		case spec == nil: // an ephemeral container runs as it was made
			continue
		case c.Unknown:
			return stop{c: c, why: "its state is unknown"}
		case b.outdated(spec, c):
			return stop{c: c, why: "Container " + name + " definition changed, will be restarted", since: b.s.Spec.Seen}
		case b.resizedByRestart(spec, c):
			return stop{c: c, why: "Container " + name + " resize requires restart", since: b.s.Resize.At}
		case b.hookFailed(c.ID, hook.PostStart):
			return stop{c: c, why: "FailedPostStartHook"}
		}
		if st := b.condemned(spec, c); st.why != "" {
			return st
		}
	}
	return stop{}
}

// condemned is the stop of a container whose probes say that it has to end.
func (b *builder) condemned(spec *v1.Container, c pod.Container) stop {
	of := lookup(b.s, spec.Name)
	why, own := probe.Condemned(spec, c.ID, of)
	if why == "" {
		return stop{}
	}
	init := slices.ContainsFunc(b.s.Pod().Spec.InitContainers, func(c v1.Container) bool { return c.Name == spec.Name })
	if pod.Restarts(b.s.Pod(), spec, init, pod.Container{State: pod.Exited, Exit: pod.Exit{Code: 137}}) {
		why += ", will be restarted"
	}
	st := stop{c: c, why: why, since: of(probe.Liveness).Since}
	if s := of(probe.Startup); s.ID == c.ID && s.Verdict == probe.Failed {
		st.since = s.Since
	}
	if own != nil {
		st.grace = *own
	}
	return st
}

// prune removes dead containers but the newest of each name and as many before
// it as are to be kept, those whose room the node wants back, and old sandboxes
// that hold no container any more.
func (b *builder) prune(p *plan, after dag.ID) dag.ID {
	n := dag.Node[pod.Facts]{ID: dag.ID{Kind: KindPrune}, Need: []dag.ID{after}, Class: "teardown", Atomic: true}
	dead, young, d := b.dead()
	old, d := b.oldSandboxes(p, d)
	if len(dead)+len(old) == 0 {
		if !young.IsZero() {
			n.Key = d.str(young.String()).key("remove dead containers")
			n.Hold = dag.Hold{Until: young, Why: "they are kept for " + b.Config.KeptFor.String()}
		}
		return b.node(n, nil)
	}
	n.Key = d.key("remove " + strconv.Itoa(len(dead)) + " dead containers and " + strconv.Itoa(len(old)) + " old sandboxes")
	n.Owns = "dead"
	containers := b.removeContainers(dead)
	return b.effectNode(n, func(ctx context.Context) (pod.Facts, error) {
		facts, err := containers(ctx)
		if err != nil || len(old) == 0 {
			return facts, err
		}
		removed, err := b.work.Sandboxes.Remove(ctx, old)
		return append(facts, removed...), err
	})
}

// dead lists the containers that are to be removed. Of those that are too young
// for that it says when the first one is old enough.
func (b *builder) dead() (dead []pod.Container, young time.Time, d sum) {
	d = newSum()
	kept := map[string]int{}
	evicted := b.s.Verdict != nil && b.s.Verdict.Reason == pod.ReasonEvicted
	for _, c := range b.s.Containers {
		newest, _ := b.s.Newest(c.Name)
		unkept := c.Unkept || evicted && c.Ended()
		if c.Gone || c.Live() || c.ID == newest.ID && !unkept {
			continue
		}
		if !unkept {
			kept[c.Name]++
			if b.Config.Kept < 0 || kept[c.Name] <= b.Config.Kept {
				continue
			}
			if ripe := c.CreatedAt.Add(b.Config.KeptFor); ripe.After(b.Now) {
				if young.IsZero() || ripe.Before(young) {
					young = ripe
				}
				continue
			}
		}
		dead = append(dead, c)
		d = d.str(c.ID)
	}
	return dead, young, d
}

func (b *builder) oldSandboxes(p *plan, d sum) ([]string, sum) {
	var old []string
	for _, sb := range b.s.Sandboxes {
		holds := func(c pod.Container) bool { return !c.Gone && c.SandboxID == sb.ID }
		if !p.usable || sb.Gone || !sb.Stopped || sb.ID == p.sandbox.ID || slices.ContainsFunc(b.s.Containers, holds) {
			continue
		}
		old = append(old, sb.ID)
		d = d.str(sb.ID)
	}
	return old, d
}

func (b *builder) removeContainers(dead []pod.Container) run {
	s := b.s
	return func(ctx context.Context) (pod.Facts, error) {
		var facts pod.Facts
		for _, c := range dead {
			f, err := b.work.Containers.Remove(ctx, s, c)
			facts = append(facts, f...)
			if err != nil {
				return facts, err
			}
		}
		return facts, nil
	}
}

func values(ids map[string]dag.ID, names []string) []dag.ID {
	out := make([]dag.ID, 0, len(ids))
	for _, n := range names {
		out = append(out, ids[n])
	}
	return out
}
