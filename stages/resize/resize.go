// Package resize changes the resources of a pod that runs: of its cgroup, its
// sandbox and its containers, in an order in which the pod's limits are never
// below those of its containers.
package resize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

// Runtime is what this package needs of the runtime. It is called concurrently.
type Runtime interface {
	// UpdatePodSandboxResources tells what the pod may use; a runtime that does
	// not know the call answers gRPC Unimplemented.
	UpdatePodSandboxResources(ctx context.Context, req *runtimeapi.UpdatePodSandboxResourcesRequest) error
	ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error)
}

// Cgroups changes the cgroup above a pod's containers.
type Cgroups interface {
	// Raise gives the pod what it has more of than before, and takes nothing.
	Raise(ctx context.Context, from, to *v1.Pod) error
	// Ensure makes the values those of the pod.
	Ensure(ctx context.Context, p *v1.Pod) error
	// Memory returns what the pod limits its memory to, 0 for nothing, and what
	// it uses, in bytes.
	Memory(ctx context.Context, p *v1.Pod) (limit, used int64, err error)
}

// Containers changes one container. What it shows then is a fact.
type Containers interface {
	Update(ctx context.Context, s *pod.State, c *v1.Container, id string) (pod.Facts, error)
}

// Resizer carries out resizes. Its methods may be called concurrently for
// different pods.
type Resizer struct {
	Runtime    Runtime
	Cgroups    Cgroups
	Containers Containers
	Period     time.Duration // of the CFS quota; 0: CPU limits are not enforced
}

// Apply carries out s.Resize. What is done is among the facts, also when there
// was an error; the next call goes on with the rest. Containers that have to be
// started anew are left alone.
func (r *Resizer) Apply(ctx context.Context, s *pod.State, sandbox string) (pod.Facts, error) {
	to := s.Pod()
	from := s.Resize.From.With(to, func(string) bool { return true })
	steps := order(s, from)
	if err := r.check(ctx, from, to, steps); err != nil {
		return nil, err
	}
	if err := r.tell(ctx, sandbox, to); err != nil {
		return nil, err
	}
	if err := r.Cgroups.Raise(ctx, from, to); err != nil {
		return nil, err
	}
	var facts pod.Facts
	for _, st := range steps {
		learnt, err := r.Containers.Update(ctx, s, st.spec, st.id)
		facts = append(facts, learnt...)
		if err != nil && !crifact.NotFound(err) { // one that is gone needs nothing
			return facts, err
		}
		facts = append(facts, pod.Actuated{At: s.Resize.At, Name: st.spec.Name, ID: st.id})
	}
	if err := r.Cgroups.Ensure(ctx, to); err != nil {
		return facts, err
	}
	return append(facts, pod.Actuated{At: s.Resize.At}), nil
}

// step is the change of one container.
type step struct {
	spec    *v1.Container
	id      string
	lowered int64 // what its memory limit becomes when that is lowered; 0: it is not
	less    bool  // something of it is lowered
}

// order lists what is to be changed, those that give something back first.
func order(s *pod.State, from *v1.Pod) []step {
	var steps []step
	to := s.Pod()
	for k, list := range [2][]v1.Container{to.Spec.InitContainers, to.Spec.Containers} {
		was := [2][]v1.Container{from.Spec.InitContainers, from.Spec.Containers}[k]
		for i := range list {
			id, left := s.Resize.Left[list[i].Name]
			if !left || s.Resize.MustRestart(&list[i], s.Allocation) {
				continue
			}
			st := step{spec: &list[i], id: id}
			if st.less = less(&list[i].Resources, &was[i].Resources); lower(list[i].Resources.Limits.Memory().Value(), was[i].Resources.Limits.Memory().Value()) {
				st.lowered = list[i].Resources.Limits.Memory().Value()
			}
			steps = append(steps, st)
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(rank(a), rank(b)) })
	return steps
}

func rank(s step) int {
	if s.less {
		return 0
	}
	return 1
}

func less(is, was *v1.ResourceRequirements) bool {
	return lower(is.Limits.Memory().Value(), was.Limits.Memory().Value()) || lower(is.Limits.Cpu().MilliValue(), was.Limits.Cpu().MilliValue()) ||
		is.Requests.Cpu().Cmp(*was.Requests.Cpu()) < 0 || is.Requests.Memory().Cmp(*was.Requests.Memory()) < 0
}

// lower reports whether a limit takes something away; 0 is no limit.
func lower(is, was int64) bool { return is > 0 && (was == 0 || is < was) }

// check refuses limits below what is in use, before anything is changed.
func (r *Resizer) check(ctx context.Context, from, to *v1.Pod, steps []step) error {
	var errs []error
	limit, used, err := r.Cgroups.Memory(ctx, to)
	was, _, werr := r.Cgroups.Memory(ctx, from)
	switch {
	case err != nil || werr != nil:
		return fmt.Errorf("reading the memory usage of the pod: %w", errors.Join(err, werr))
	case lower(limit, was) && used >= limit:
		errs = append(errs, fmt.Errorf("attempting to set pod memory limit (%d) below current usage (%d)", limit, used))
	}
	for _, st := range steps {
		if st.lowered == 0 {
			continue
		}
		used, err := r.usage(ctx, st.id)
		switch {
		case crifact.Unsupported(err): // then the kernel decides
		case err != nil:
			errs = append(errs, fmt.Errorf("reading the memory usage of container %q: %w", st.spec.Name, err))
		case used >= st.lowered:
			errs = append(errs, fmt.Errorf("attempting to set container %q memory limit (%d) below current usage (%d)", st.spec.Name, st.lowered, used))
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("cannot decrease memory limits: %w", errors.Join(errs...))
	}
	return nil
}

func (r *Resizer) usage(ctx context.Context, id string) (int64, error) {
	stats, err := r.Runtime.ListContainerStats(ctx, &runtimeapi.ContainerStatsFilter{Id: id})
	if err != nil {
		return 0, err
	}
	for _, st := range stats {
		if m := st.GetMemory(); m.GetUsageBytes() != nil {
			return int64(m.GetUsageBytes().GetValue()), nil //nolint:gosec // memory of one machine
		}
	}
	return 0, errors.New("the runtime does not tell")
}

// tell gives the runtime the sums of the pod, which some need; without a
// sandbox there is nothing to tell.
func (r *Resizer) tell(ctx context.Context, sandbox string, p *v1.Pod) error {
	o := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
	if sandbox == "" {
		return nil
	}
	err := r.Runtime.UpdatePodSandboxResources(ctx, &runtimeapi.UpdatePodSandboxResourcesRequest{
		PodSandboxId: sandbox,
		Overhead:     crifact.LinuxResources(p.Spec.Overhead, p.Spec.Overhead, r.Period),
		Resources:    crifact.LinuxResources(resourcehelper.PodRequests(p, o), resourcehelper.PodLimits(p, o), r.Period),
	})
	if crifact.Unsupported(err) {
		return nil
	}
	return err
}
