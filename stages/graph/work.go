package graph

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/hook"
	"github.com/flowlet/flowlet/stages/probe"
)

// Work is what the stages do. A graph that is only looked at needs none of it.
type Work struct {
	Observer   Observer
	Admission  Admission
	Cgroups    Cgroups
	Dirs       Dirs
	Volumes    Volumes
	Images     Images
	Sandboxes  Sandboxes
	Containers Containers
	Hooks      Hooks
	Probes     Probes
	Records    Records
	Resizer    Resizer
	// Removed reports whether the pod's removal was seen by now, for work of
	// several steps. Optional.
	Removed func(k pod.Key) bool
}

// removed is nil in graphs that are only looked at.
func (w *Work) removed() func(k pod.Key) bool {
	if w == nil {
		return nil
	}
	return w.Removed
}

// Observer looks at all that the runtime has of a pod.
type Observer interface {
	Look(ctx context.Context, k pod.Key) (pod.Facts, error)
}

// Admission decides whether the node takes a pod.
type Admission interface {
	Admit(ctx context.Context, s *pod.State) (pod.Facts, error)
	// Resize gives a pod the resources that its spec asks for.
	Resize(ctx context.Context, s *pod.State) (pod.Facts, error)
}

// Resizer brings what runs of a pod in line with what it was given.
type Resizer interface {
	// Apply carries out s.Resize in the sandbox: what is done is a fact, also
	// when there was an error.
	Apply(ctx context.Context, s *pod.State, sandbox string) (pod.Facts, error)
}

// Cgroups makes and removes pods' cgroups.
type Cgroups interface {
	Ensure(ctx context.Context, p *v1.Pod) error
	Remove(ctx context.Context, s *pod.State) error
}

// Dirs makes and removes pods' directories.
type Dirs interface {
	Ensure(ctx context.Context, p *v1.Pod) error
	Remove(ctx context.Context, s *pod.State) error
}

// Volumes mounts and unmounts.
type Volumes interface {
	Ensure(ctx context.Context, p *v1.Pod, v *v1.Volume) error
	// Unmount undoes all volumes of the pod that are found on the node.
	Unmount(ctx context.Context, s *pod.State) error
}

// Images looks images up and pulls them.
type Images interface {
	Look(ctx context.Context, p *v1.Pod, ref string, policy v1.PullPolicy) (pod.Facts, error)
	Pull(ctx context.Context, p *v1.Pod, ref string, sandbox *runtimeapi.PodSandboxConfig) (pod.Facts, error)
}

// Sandboxes makes and ends pod sandboxes.
type Sandboxes interface {
	Config(s *pod.State, attempt uint32) (*runtimeapi.PodSandboxConfig, error)
	Create(ctx context.Context, s *pod.State, attempt uint32) (pod.Facts, error)
	Stop(ctx context.Context, ids []string) (pod.Facts, error)
	Remove(ctx context.Context, ids []string) (pod.Facts, error)
}

// Start is a container to be started.
type Start struct {
	State     *pod.State
	Container *v1.Container
	Init      bool
	Attempt   uint32
	SandboxID string
	Sandbox   *runtimeapi.PodSandboxConfig
	Existing  string // ID of a created container of this attempt
	Image     pod.Image
	Removed   func() bool // is the pod to go by now? nil: nobody knows
}

// Containers starts and ends containers.
type Containers interface {
	Start(ctx context.Context, s Start) (pod.Facts, error)
	Stop(ctx context.Context, s *pod.State, c pod.Container, grace time.Duration, why string) (pod.Facts, error)
	Remove(ctx context.Context, s *pod.State, c pod.Container) (pod.Facts, error)
}

// Hooks runs lifecycle hooks of running containers.
type Hooks interface {
	Run(ctx context.Context, s *pod.State, c *v1.Container, id string, kind hook.Kind) error
}

// Probes checks running containers.
type Probes interface {
	Check(ctx context.Context, s *pod.State, c *v1.Container, id string, kind probe.Kind) probe.Result
}

// Records keeps pods' state files.
type Records interface {
	Save(ctx context.Context, r pod.Record) error
	Delete(ctx context.Context, k pod.Key) error
}

// run is what a node of the graph does.
type run = func(ctx context.Context) (pod.Facts, error)

// plain makes a run of work that learns nothing.
func plain(do func(ctx context.Context) error) run {
	return func(ctx context.Context) (pod.Facts, error) { return nil, do(ctx) }
}

// effect makes a run of a write to an object of the pod: when it ended, and
// whether the answer was clear, is a fact too.
func effect(object string, do run) run {
	return func(ctx context.Context) (pod.Facts, error) {
		facts, err := do(ctx)
		return append(facts, pod.Wrote{Object: object, At: time.Now(), Unsure: uncertain(err)}), err
	}
}

// errRemoved ends a run that would have made something of a pod whose removal
// was seen between the decision and the run.
var errRemoved = errors.New("not made: the pod was removed meanwhile")

// unlessRemoved makes a run that does nothing any more once the pod is to go.
func (b *builder) unlessRemoved(do run) run {
	removed, k := b.work.removed(), pod.KeyOf(b.s.UID())
	return func(ctx context.Context) (pod.Facts, error) {
		if removed != nil && removed(k) {
			return nil, errRemoved
		}
		return do(ctx)
	}
}

// undo makes a run of a write that is simply sent again when its answer is
// missing. It is given up as soon as its outcome is seen, so a missing answer
// is the rule and no reason to look.
func undo(object string, do run) run {
	return func(ctx context.Context) (pod.Facts, error) {
		facts, err := do(ctx)
		return append(facts, pod.Wrote{Object: object, At: time.Now()}), err
	}
}

// uncertain reports whether a write that ended with err may have happened.
func uncertain(err error) bool {
	var u interface{ Uncertain() bool }
	return errors.As(err, &u) && u.Uncertain()
}
