package bench

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/sourcegraph/conc/pool"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
)

// floor starts pods with the calls that any agent has to make, and nothing
// else: no state, no decisions, no events.
type floor struct {
	client  *cri.Client
	machine Machine
	slots   int // pods in flight
}

// start starts pods, slots at a time, and calls ready with the index of each
// one. It stops at the first error.
func (f *floor) start(ctx context.Context, pods []*v1.Pod, ready func(i int)) error {
	var next atomic.Int64
	p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	for range min(f.slots, len(pods)) {
		p.Go(func(ctx context.Context) error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(pods) || ctx.Err() != nil {
					return ctx.Err()
				}
				if err := f.pod(ctx, pods[i]); err != nil {
					return fmt.Errorf("floor: pod %s: %w", pods[i].Name, err)
				}
				ready(i)
			}
		})
	}
	return p.Wait()
}

// pod starts one pod: images and sandbox side by side, then all containers.
func (f *floor) pod(ctx context.Context, p *v1.Pod) error {
	if err := f.machine.Ensure(ctx, p); err != nil {
		return err
	}
	config, err := f.machine.Sandbox(p)
	if err != nil {
		return err
	}
	refs := imagesOf(p)
	ids := make([]string, len(refs))
	looks := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	for i, ref := range refs {
		looks.Go(func(ctx context.Context) (err error) {
			ids[i], err = f.look(ctx, ref)
			return err
		})
	}
	sandbox, err := f.sandbox(ctx, config)
	if lookErr := looks.Wait(); err == nil {
		err = lookErr
	}
	if err != nil {
		return err
	}
	byRef := map[string]string{}
	for i, ref := range refs {
		byRef[ref] = ids[i]
	}
	if len(p.Spec.Containers) == 1 {
		return f.container(ctx, config, Made{p, 0, byRef[p.Spec.Containers[0].Image], sandbox})
	}
	starts := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	for i := range p.Spec.Containers {
		starts.Go(func(ctx context.Context) error {
			return f.container(ctx, config, Made{p, i, byRef[p.Spec.Containers[i].Image], sandbox})
		})
	}
	return starts.Wait()
}

func imagesOf(p *v1.Pod) []string {
	var refs []string
	seen := map[string]bool{}
	for i := range p.Spec.Containers {
		if ref := p.Spec.Containers[i].Image; !seen[ref] {
			seen[ref] = true
			refs = append(refs, ref)
		}
	}
	return refs
}

func (f *floor) look(ctx context.Context, ref string) (string, error) {
	image, err := f.client.ImageStatus(ctx, &runtimeapi.ImageSpec{Image: ref})
	if err != nil {
		return "", err
	}
	if image == nil {
		return "", fmt.Errorf("image %s is not on the runtime", ref)
	}
	return image.GetId(), nil
}

func (f *floor) sandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig) (*runtimeapi.PodSandboxStatus, error) {
	id, err := f.client.RunPodSandbox(ctx, config, "")
	if err != nil {
		return nil, err
	}
	return f.client.PodSandboxStatus(ctx, id)
}

func (f *floor) container(ctx context.Context, config *runtimeapi.PodSandboxConfig, m Made) error {
	c, err := f.machine.Container(m)
	if err != nil {
		return err
	}
	id, err := f.client.CreateContainer(ctx, m.Sandbox.GetId(), c, config)
	if err != nil {
		return err
	}
	if err := f.client.StartContainer(ctx, id); err != nil {
		return err
	}
	_, err = f.client.ContainerStatus(ctx, id)
	return err
}
