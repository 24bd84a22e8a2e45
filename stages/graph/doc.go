// Package graph says which stages a pod has and why each edge is there. It is
// pure: from the time, what is known about a pod and what pods share it builds
// the whole graph of the pod's phase, every time anew. Nothing here runs; the
// work is called in closures, by the engine.
//
// Only true edges are drawn. A container needs its own image, its own volumes,
// the sandbox and, until the pod is initialized, the init containers; pulls,
// volumes and the sandbox never need each other. A stage has something to do
// only where facts and spec differ.
package graph

import (
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Graph is a pod's graph.
type Graph = dag.Graph[pod.Facts]

// Kinds of stages: names of spans and labels of metrics.
const (
	KindObserve          = "observe"
	KindAdmit            = "admit"
	KindClaim            = "claim"
	KindDeadline         = "deadline"
	KindCgroup           = "cgroup"
	KindDirs             = "dirs"
	KindVolume           = "volume"
	KindImageLook        = "image.look"
	KindImage            = "image"
	KindSandbox          = "sandbox"
	KindInit             = "init"
	KindContainer        = "container"
	KindEphemeral        = "ephemeral"
	KindStop             = "stop"
	KindSandboxStop      = "sandbox.stop"
	KindPostStart        = "poststart"
	KindPreStop          = "prestop"
	KindProbe            = "probe"
	KindRestartAll       = "restart.all"
	KindPrune            = "prune"
	KindUnmount          = "volume.unmount"
	KindCgroupRemove     = "cgroup.remove"
	KindSettle           = "settle"
	KindContainersRemove = "containers.remove"
	KindSandboxRemove    = "sandbox.remove"
	KindDirsRemove       = "dirs.remove"
	KindForget           = "forget"
	KindRecord           = "record"
	KindResize           = "resize"
	KindStatus           = "status"
)

// CrashLoop begins the reason of a hold that waits out a crash-loop back-off.
const CrashLoop = "crash-loop back-off"

// World is what pods share. Reading it notes the topic that was read.
type World interface {
	// Configured reports whether this agent has that source.
	Configured(source string) bool
	// Synced reports whether the source has told all it knows.
	Synced(source string) bool
	// NameHolder returns another static pod that holds this pod's full name.
	NameHolder(s *pod.State) (pod.Key, bool)
	// NetworkReady reports whether sandboxes with a pod network can be made, or why not.
	NetworkReady() (ok bool, why string)
	// Room reports whether the pod fits now; if it will once ending pods are
	// gone, waiting names them.
	Room(s *pod.State) (ok bool, waiting []string)
	// Resizable reports whether the pod can be given what it asks for now; if
	// not, why: Deferred or Infeasible.
	Resizable(s *pod.State) (ok bool, reason, message string)
}

// Config is what the graph takes from the agent's configuration.
type Config struct {
	CrashInitial time.Duration // first delay of a crash loop
	CrashMax     time.Duration
	// Kept is how many ended attempts of a container are kept beside its newest; negative: all.
	Kept int
	// KeptFor is how long an ended container is kept at least, from when it was made.
	KeptFor time.Duration
	// ContainerHash is the recipe of the annotation io.kubernetes.container.hash.
	ContainerHash func(name, image string) string
	// Registry names the registry of an image reference, for its class.
	Registry func(ref string) string
	// Started is when this agent began: what another kind of agent made before that had its hooks, and
	// probes of it that were due before are spread over their period.
	Started time.Time
	// RuntimeSource is the source whose first full look everything waits for.
	RuntimeSource string
}

// In is all that a pod's graph depends on.
type In struct {
	Now    time.Time
	State  *pod.State
	World  World
	Config *Config
}

// Build returns the graph of the pod's phase.
func Build(in In, w *Work) *Graph {
	b := &builder{In: in, s: in.State, work: w, g: &Graph{}}
	b.g.Priority, b.g.Ends = priority(in.State), in.State.Ends
	b.g.Grow(b.size())
	switch phase := in.State.Phase; {
	case phase == pod.Forgotten:
	case phase == pod.Deleting:
		b.remove()
	case in.State.Spec == nil:
		b.found()
	case phase == pod.Finishing || phase == pod.Finished:
		b.finish()
	default:
		b.run()
	}
	return b.g
}

// size is about how many stages the graph will have.
func (b *builder) size() int {
	p := b.s.Pod()
	if p == nil {
		return 12
	}
	return 12 + 4*(len(p.Spec.InitContainers)+len(p.Spec.Containers)+len(p.Spec.EphemeralContainers)) + len(p.Spec.Volumes)
}

// EndingPriority is that of pods which are ending: above any that a pod may
// have (2,000,001,000), and within 32 bits.
const EndingPriority = 2_140_000_000

func priority(s *pod.State) int {
	if s.Phase >= pod.Finishing {
		return EndingPriority
	}
	if p := s.Pod(); p != nil && p.Spec.Priority != nil {
		return int(*p.Spec.Priority)
	}
	return 0
}
