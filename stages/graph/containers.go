package graph

import (
	"context"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

func itoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// inputs is what containers need; inits grows as they are added.
type inputs struct {
	places  []dag.ID // cgroup and directories
	sandbox dag.ID
	volumes map[string]dag.ID
	images  map[string][]dag.ID // by reference
	stops   map[string]dag.ID
	restart []dag.ID // of all containers but the ephemeral ones
	record  dag.ID
	inits   []dag.ID // the init containers so far, until the pod is initialized
	after   []dag.ID // the active deadline, and earlier containers with a postStart hook
}

// container starts one container. It needs the pod's cgroup, which its request
// names, and directories, which hold its logs and its last words; its own image
// and volumes, the sandbox and the init containers before it; an ephemeral one
// does not need those. It comes after earlier ones only where those have a
// postStart hook.
func (b *builder) container(p *plan, u *unit, in *inputs) {
	n := dag.Node[pod.Facts]{
		ID:     dag.ID{Kind: u.kind, Of: u.spec.Name},
		Need:   slices.Concat(in.places, []dag.ID{in.sandbox, in.stops[u.spec.Name]}),
		After:  in.after,
		Owns:   ownContainer(u.spec.Name),
		Class:  "container",
		Atomic: true,
	}
	if u.kind != KindEphemeral {
		n.Need = append(n.Need, in.restart...)
	}
	for ref := range b.imagesOf(u.spec) {
		n.Need = append(n.Need, in.images[ref]...)
	}
	for i := range b.s.Pod().Spec.Volumes {
		if name := b.s.Pod().Spec.Volumes[i].Name; uses(u.spec, name) {
			n.Need = append(n.Need, in.volumes[name])
		}
	}
	if !p.initialized {
		n.Need = append(n.Need, in.inits...)
	}
	if u.last.Reset { // the next agent must not take for an end of its own that of one that was reset
		n.After = append(n.After[:len(n.After):len(n.After)], in.record)
	}
	if u.do == await {
		n.Need, n.After = nil, nil // it runs: only its own end is missing
	}
	n.Key, n.Hold = b.startKey(p, u)
	id := b.effectNode(n, b.unlessRemoved(b.start(p, u)))
	hooked, ok := b.postStart(u, id)
	if ok {
		in.after = append(in.after[:len(in.after):len(in.after)], id, hooked)
	}
	if u.init() {
		in.inits = append(in.inits, id)
		if ok {
			in.inits = append(in.inits, hooked)
		}
	}
	if c := u.last; c.Live() && (!u.init() || u.sidecar()) {
		b.probes(u.spec, c, false)
	}
}

func (b *builder) startKey(p *plan, u *unit) (dag.Key, dag.Hold) {
	switch u.do {
	case await:
		if u.sidecar() {
			return newSum().str(u.last.ID).key("start up"), dag.Hold{Why: "the startup probe of sidecar " + u.spec.Name + " has not passed"}
		}
		return newSum().str(u.last.ID).key("run to its end"), dag.Hold{Why: "init container " + u.spec.Name + " is running"}
	case start:
		key := newSum().num(uint64(u.attempt)).num(uint64(p.attempt)).num(b.s.Spec.Sum).key("start attempt " + itoa(u.attempt))
		if u.kind == KindEphemeral {
			return key, b.targetHold(p, u)
		}
		return key, b.crashHold(p, u)
	}
	return dag.Key{}, dag.Hold{}
}

// crashHold waits out the crash-loop back-off of a container that ended.
func (b *builder) crashHold(p *plan, u *unit) dag.Hold {
	crash, ok := b.s.Crashes[u.spec.Name]
	if !ok || p.restarting() || !u.last.Ended() || u.last.Exit.FinishedAt.IsZero() {
		return dag.Hold{}
	}
	if h := b.Config.ContainerHash; h != nil && crash.Hash != "" && crash.Hash != h(u.spec.Name, u.spec.Image) {
		return dag.Hold{}
	}
	delay := crash.Delay(b.Config.CrashInitial, b.Config.CrashMax)
	if delay == 0 || u.last.Exit.FinishedAt.After(b.Now) { // the clock was set back
		return dag.Hold{}
	}
	return dag.Hold{Until: u.last.Exit.FinishedAt.Add(delay), Why: CrashLoop + " " + delay.String()}
}

func (b *builder) start(p *plan, u *unit) run {
	if u.do != start {
		return nil
	}
	s, sandbox, attempt := b.s, p.sandbox, p.attempt
	st := Start{
		State: s, Container: u.spec, Init: u.init(), Attempt: u.attempt, SandboxID: sandbox.ID,
		Existing: u.existing, Image: s.Images[u.spec.Image],
	}
	if removed := b.work.removed(); removed != nil {
		st.Removed = func() bool { return removed(pod.KeyOf(s.UID())) }
	}
	return func(ctx context.Context) (pod.Facts, error) {
		cfg, err := b.work.Sandboxes.Config(s, attempt)
		if err != nil {
			return nil, err
		}
		st.Sandbox = cfg
		facts, err := b.work.Containers.Start(ctx, st)
		return madeWith(s, st.Container.Name, facts), err
	}
}

// deadline of the teardown: the removal's or the verdict's, or for a pod that completed its
// grace from the end of its last regular container on (of its init containers,
// where none of those ran), so that the ends of sidecars do not move it.
func (b *builder) deadline() time.Time {
	if by := b.s.KillBy(); !by.IsZero() {
		return by
	}
	p := b.s.Pod()
	last := b.lastEnd(p.Spec.Containers)
	if last.IsZero() {
		last = b.lastEnd(p.Spec.InitContainers)
	}
	if last.IsZero() {
		last = b.s.Admission.At
	}
	return last.Add(b.s.Grace())
}

func (b *builder) lastEnd(specs []v1.Container) (last time.Time) {
	for i := range specs {
		if c, ok := b.s.Newest(specs[i].Name); ok && c.Ended() && c.Exit.FinishedAt.After(last) {
			last = c.Exit.FinishedAt
		}
	}
	return last
}
