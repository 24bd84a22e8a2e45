package graph

import (
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

// action is what has to happen with one container of the spec.
type action uint8

const (
	keep  action = iota // as it should be, or over for good
	await               // an init container that runs: the pod waits for its end, or for a sidecar to have started
	start
)

// unit is a container of the spec with what is to be done about it.
type unit struct {
	spec     *v1.Container
	kind     string // of the stage that starts it
	do       action
	attempt  uint32 // of the container that is there, or is to be made
	existing string // a created container of that attempt
	last     pod.Container
}

func (u *unit) init() bool { return u.kind == KindInit }

func (u *unit) sidecar() bool { return u.init() && pod.Sidecar(u.spec) }

// plan compares spec and facts by the kubelet's rules.
type plan struct {
	sandbox     pod.Sandbox // the usable one
	usable      bool
	attempt     uint32 // of the usable sandbox, or of the one that is to be made
	initialized bool
	units       []unit
	triggers    []pod.Container // whose end makes all start anew
	demand      sum             // names all that is about to be made, and stays the same while it is being made; zero: nothing is
	wanted      bool
}

func (b *builder) plan() plan {
	p := plan{}
	p.sandbox, p.usable = usable(b.s)
	if p.usable {
		p.attempt = p.sandbox.Attempt
	} else {
		for _, sb := range b.s.Sandboxes {
			p.attempt = max(p.attempt, sb.Attempt+1)
		}
	}
	p.triggers = b.triggers()
	p.initialized = p.usable && !p.restarting() && pod.Initialized(b.s, p.sandbox.ID)
	spec := &b.s.Pod().Spec
	for i := range spec.EphemeralContainers {
		u := unit{spec: (*v1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon), kind: KindEphemeral}
		b.decideOnce(&p, &u)
		p.units = append(p.units, u)
	}
	reached := -1 // the last init container that was made in this sandbox
	for i := range spec.InitContainers {
		if _, ok := b.current(&p, spec.InitContainers[i].Name); ok {
			reached = i
		}
	}
	for i := range spec.InitContainers {
		u := unit{spec: &spec.InitContainers[i], kind: KindInit}
		passed := p.initialized || i < reached
		b.decide(&p, &u, passed)
		p.units = append(p.units, u)
	}
	for i := range spec.Containers {
		u := unit{spec: &spec.Containers[i], kind: KindContainer}
		b.decide(&p, &u, false)
		p.units = append(p.units, u)
	}
	p.sum()
	return p
}

// usable returns the sandbox that containers can run in: the newest, the only
// ready one, in the right network namespace and, on the pod network, with an IP.
func usable(s *pod.State) (pod.Sandbox, bool) {
	newest, ok := s.Sandbox()
	if !ok || !newest.Ready {
		return pod.Sandbox{}, false
	}
	for _, sb := range s.Sandboxes {
		if sb.ID != newest.ID && sb.Ready && !sb.Gone {
			return pod.Sandbox{}, false
		}
	}
	host := s.Pod().Spec.HostNetwork
	if newest.Detailed && (newest.HostNetwork != host || (!host && len(newest.IPs) == 0)) {
		return pod.Sandbox{}, false
	}
	return newest, true
}

// restarting reports whether all containers are to go and to start anew.
func (p *plan) restarting() bool { return len(p.triggers) > 0 }

// current returns the newest container of that name in the usable sandbox, if
// it can stay.
func (b *builder) current(p *plan, name string) (pod.Container, bool) {
	if !p.usable || p.restarting() {
		return pod.Container{}, false
	}
	return b.s.NewestIn(name, p.sandbox.ID)
}

// decide says what is to be done about one container. passed: it is an init
// container whose turn is over.
func (b *builder) decide(p *plan, u *unit, passed bool) {
	c, ok := b.current(p, u.spec.Name)
	newest, _ := b.s.Newest(u.spec.Name)
	u.last, u.attempt = newest, newest.Attempt
	oneShot := u.init() && !u.sidecar()
	switch {
	case oneShot && passed:
	case !ok && !u.init() && newest.Ended() && !newest.Reset && !p.restarting() && !b.restarts(u, newest):
		// It ended for good in an earlier sandbox.
	case !ok:
		u.start(b.s)
	case c.Unknown, c.Live() && (b.outdated(u.spec, c) || b.resizedByRestart(u.spec, c)):
		u.start(b.s) // after its stop
	case c.Live():
		if oneShot || u.init() && !p.initialized && !b.started(u.spec, c.ID) {
			u.do = await
		}
	case c.State == pod.Created && !c.Gone && c.ID == newest.ID && !b.outdated(u.spec, c):
		u.do, u.existing = start, c.ID
	case c.State == pod.Created:
		u.start(b.s)
	case oneShot && c.Succeeded():
	case b.restarts(u, c):
		u.start(b.s)
	}
}

// decideOnce is decide for an ephemeral container: it is made once in the life
// of the pod, whatever becomes of it.
func (b *builder) decideOnce(p *plan, u *unit) {
	c, made := b.s.Newest(u.spec.Name)
	u.last, u.attempt = c, c.Attempt
	switch {
	case !made && b.s.NextAttempt(u.spec.Name) == 0:
		u.do = start
	case made && c.State == pod.Created && !c.Gone && p.usable && c.SandboxID == p.sandbox.ID:
		u.do, u.existing = start, c.ID
	}
}

func (u *unit) start(s *pod.State) {
	u.do, u.attempt = start, s.NextAttempt(u.spec.Name)
}

func (b *builder) restarts(u *unit, c pod.Container) bool {
	return pod.Restarts(b.s.Pod(), u.spec, u.init(), c)
}

// outdated reports whether a container was made from another name or image.
func (b *builder) outdated(spec *v1.Container, c pod.Container) bool {
	if c.Hash == "" || b.Config.ContainerHash == nil {
		return false
	}
	return c.Hash != b.Config.ContainerHash(spec.Name, spec.Image)
}

// sum names the demand: the sandbox and, for each container, the attempt that
// is there or is to be made, so that it does not change while they are made
// one after the other.
func (p *plan) sum() {
	p.wanted = !p.usable
	for i := range p.units {
		p.wanted = p.wanted || p.units[i].do == start
	}
	if p.wanted {
		p.demand = p.sumOf(func(*v1.Container) bool { return true })
	}
}

func (p *plan) sumOf(uses func(c *v1.Container) bool) sum {
	d := newSum().num(uint64(p.attempt))
	for i := range p.units {
		if u := &p.units[i]; uses(u.spec) {
			d = d.str(u.spec.Name).num(uint64(u.attempt))
		}
	}
	return d
}

// demandOf returns the demand for what only some containers use; zero when
// none of them is to be started.
func (p *plan) demandOf(uses func(c *v1.Container) bool) sum {
	for i := range p.units {
		if u := &p.units[i]; u.do == start && uses(u.spec) {
			return p.sumOf(uses)
		}
	}
	return 0
}
