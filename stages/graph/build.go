package graph

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// builder assembles one graph.
type builder struct {
	In
	s    *pod.State
	work *Work
	g    *Graph
}

// node adds a stage whose class is its kind, and whose run is done by work.
func (b *builder) node(n dag.Node[pod.Facts], do run) dag.ID {
	if n.Class == "" {
		n.Class = n.ID.Kind
	}
	if n.Owns != "" {
		n.Owns = pod.KeyOf(b.s.UID()).Object(n.Owns)
	}
	if b.work != nil {
		n.Run = do
	}
	return b.g.Add(n)
}

// Objects of a pod that stages own.
const ownSandbox = "sandbox"

func ownContainer(name string) string { return "container/" + name }

func (b *builder) effectNode(n dag.Node[pod.Facts], do run) dag.ID {
	return b.node(n, effect(n.Owns, do))
}

// observe has work while the runtime was not looked at yet, or an object is unsure.
func (b *builder) observe() dag.ID {
	n := dag.Node[pod.Facts]{ID: dag.ID{Kind: KindObserve}}
	if src := b.Config.RuntimeSource; src != "" && !b.World.Synced(src) {
		n.Key = newSum().key("first look at the runtime")
		n.Hold.Why = "the runtime has not been listed yet"
	} else if len(b.s.Unsure) > 0 {
		d := newSum().num(uint64(b.s.LastWrite.UnixNano()))
		for _, o := range b.s.Unsure {
			d = d.str(o)
		}
		n.Key = d.key("look again: the end of the last write is not known")
		// Where both are at one moment of a coarse clock, nobody could tell
		// which came first, and the look would count for nothing.
		n.Hold = dag.Hold{Until: b.s.LastWrite.Add(1), Why: "the last write has just ended"}
	}
	k := pod.KeyOf(b.s.UID())
	return b.node(n, func(ctx context.Context) (pod.Facts, error) { return b.work.Observer.Look(ctx, k) })
}

// stop says which container of a name is to be stopped; nothing when why is empty.
type stop struct {
	c        pod.Container
	why      string
	since    time.Time     // when the reason came up; zero: no preStop hook is run for it
	deadline time.Time     // when it is to be killed; zero: its grace from now on
	grace    time.Duration // instead of the pod's, where there is no deadline; 0: the pod's
	hold     dag.Hold
	owns     bool // the container is waited for, also where nothing is to be stopped
	need     dag.ID
	after    []dag.ID
}

func (b *builder) stop(st stop, name string) dag.ID {
	n := dag.Node[pod.Facts]{
		ID: dag.ID{Kind: KindStop, Of: name}, Need: []dag.ID{st.need}, After: st.after, Owns: ownContainer(name), Class: "stop",
	}
	if st.why == "" {
		if b.s.Phase == pod.Active && !st.owns {
			n.Owns = "" // what starts the container runs in this graph and tells by itself
		}
		return b.node(n, nil)
	}
	d := newSum().str(st.c.ID).str(st.why)
	if !st.deadline.IsZero() {
		d = d.num(uint64(st.deadline.UnixNano()))
	}
	n.Key, n.Hold = d.key("stop "+short(st.c.ID)+": "+st.why), st.hold
	s := b.s
	return b.node(n, undo(n.Owns, func(ctx context.Context) (pod.Facts, error) {
		grace := cmp.Or(st.grace, s.Grace())
		if r := s.Removal; r != nil {
			grace = r.Grace
		}
		if !st.deadline.IsZero() {
			grace = min(grace, time.Until(st.deadline)) // a clock that was set back makes no grace longer
		}
		return b.work.Containers.Stop(ctx, s, st.c, grace, st.why)
	}))
}

func short(id string) string { return id[:min(len(id), 12)] }

// sandboxStop has work while a sandbox other than the usable one is not stopped.
func (b *builder) sandboxStop(usable string, needs []dag.ID) dag.ID {
	n := dag.Node[pod.Facts]{
		ID: dag.ID{Kind: KindSandboxStop}, Need: needs, Owns: ownSandbox, Class: "teardown", Atomic: true,
	}
	var ids []string
	d := newSum()
	for _, sb := range b.s.Sandboxes {
		if !sb.Gone && !sb.Stopped && sb.ID != usable {
			ids = append(ids, sb.ID)
			d = d.str(sb.ID)
		}
	}
	if len(ids) == 0 {
		return b.node(n, nil)
	}
	n.Key = d.key("stop sandbox " + short(ids[0]) + more(len(ids)-1))
	return b.effectNode(n, func(ctx context.Context) (pod.Facts, error) {
		return b.work.Sandboxes.Stop(ctx, ids)
	})
}

func more(n int) string {
	if n == 0 {
		return ""
	}
	return " and " + strconv.Itoa(n) + " more"
}

// recordDelay keeps the state file out of the way of the pod's start. An agent
// that is killed before finds all of such a pod in source and runtime.
const recordDelay = time.Second

// record keeps what the next run of the agent cannot learn elsewhere. Nothing
// waits for it.
func (b *builder) record() dag.ID {
	n := dag.Node[pod.Facts]{ID: dag.ID{Kind: KindRecord}, Owns: "record", Class: "state"}
	if !b.s.Admission.Done && b.s.KillBy().IsZero() {
		return b.node(n, nil) // nothing that the source would not tell again
	}
	n.Key = recordSum(b.s).key("write state file")
	if due := b.s.Admission.At.Add(recordDelay); b.untold() && !b.s.Admission.At.After(b.Now) { // the clock may have been set back
		n.Hold = dag.Hold{Until: due, Why: "the pod is being started", OnTime: true}
	}
	s := b.s
	return b.node(n, plain(func(ctx context.Context) error { return b.work.Records.Save(ctx, pod.RecordOf(s)) }))
}

// untold reports whether nothing has happened to the pod that only a state
// file could tell the next run of the agent.
func (b *builder) untold() bool {
	over := func(c pod.Container) bool { return c.Ended() || c.Attempt > 0 }
	resizes := b.s.Resize != nil || b.s.Spec != nil && b.s.Spec.Asked != nil
	return len(b.s.Hooks) == 0 && b.s.Phase == pod.Active && !resizes && !slices.ContainsFunc(b.s.Containers, over)
}

func ephemeral(s *pod.State, name string) bool {
	p := s.Pod()
	return p != nil && slices.ContainsFunc(p.Spec.EphemeralContainers, func(e v1.EphemeralContainer) bool { return e.Name == name })
}

func recordSum(s *pod.State) sum {
	d := newSum().num(uint64(s.Incarnation)).num(uint64(s.StartTime.UnixNano())).num(uint64(s.Phase / pod.Finished))
	if by := s.KillBy(); !by.IsZero() {
		d = d.num(uint64(by.UnixNano()))
	}
	if s.Allocation != nil {
		d = amounts(d, s.Allocation)
	}
	if r := s.Resize; r != nil {
		d = d.num(uint64(r.At.UnixNano()))
		for _, name := range slices.Sorted(maps.Keys(r.Left)) {
			d = d.str(name).str(r.Left[name])
		}
		if r.Pod {
			d = d.str("pod")
		}
	}
	for _, c := range s.Containers {
		if c.Ended() || c.Attempt > 0 || ephemeral(s, c.Name) {
			d = d.str(c.ID).num(uint64(c.State))
		}
		if c.Reset {
			d = d.str("reset")
		}
	}
	var verdicts sum // and ended hooks, in no order
	for k, p := range s.Probes {
		if p.Verdict != "" {
			verdicts ^= newSum().str(k.Container).str(k.Kind).str(p.ID).str(string(p.Verdict)).num(uint64(p.Since.UnixNano()))
		}
	}
	for k := range s.Hooks {
		verdicts ^= newSum().str(k.ID).str(k.Kind)
	}
	return d.num(uint64(verdicts))
}

// names of all containers that the spec has or the runtime shows, spec first.
func (b *builder) names() []string {
	var names []string
	if p := b.s.Pod(); p != nil {
		for i := range p.Spec.InitContainers {
			names = append(names, p.Spec.InitContainers[i].Name)
		}
		for i := range p.Spec.Containers {
			names = append(names, p.Spec.Containers[i].Name)
		}
		for i := range p.Spec.EphemeralContainers {
			names = append(names, p.Spec.EphemeralContainers[i].Name)
		}
	}
	spec := len(names)
	for _, c := range b.s.Containers {
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names[spec:])
	return names
}
