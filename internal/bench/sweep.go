package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sourcegraph/conc/pool"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/internal/pod"
)

// sweepWait bounds the removal of what is left; sweepSlots is how many
// sandboxes are taken down at a time.
const (
	sweepWait  = 2 * time.Minute
	sweepSlots = 8
)

// sweep removes every sandbox of the bench's namespace from the runtime, and
// what was made on the machine for pods. It goes on when the context of the
// measurement has ended.
func sweep(ctx context.Context, client *cri.Client, machine Machine, pods []*v1.Pod) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), sweepWait, errors.New("cleaning up takes too long"))
	defer cancel()
	err := sweepRuntime(ctx, client)
	for _, p := range pods {
		err = errors.Join(err, machine.Remove(ctx, p))
	}
	if err != nil {
		return fmt.Errorf("cleaning up after the measurement: %w", err)
	}
	return nil
}

func sweepRuntime(ctx context.Context, client *cri.Client) error {
	filter := &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{pod.LabelPodNamespace: Namespace}}
	left, err := client.ListPodSandbox(ctx, filter)
	if err != nil {
		return err
	}
	p := pool.New().WithErrors().WithMaxGoroutines(sweepSlots)
	for _, sb := range left {
		p.Go(func() error { return takeDown(ctx, client, sb.GetId()) })
	}
	return p.Wait()
}

// takeDown makes the calls with which an agent ends and removes a pod.
func takeDown(ctx context.Context, client *cri.Client, sandbox string) error {
	containers, err := client.ListContainers(ctx, &runtimeapi.ContainerFilter{PodSandboxId: sandbox})
	if err != nil {
		return err
	}
	for _, c := range containers {
		if err := client.StopContainer(ctx, c.GetId(), 0); err != nil {
			return err
		}
	}
	if err := client.StopPodSandbox(ctx, sandbox); err != nil {
		return err
	}
	for _, c := range containers {
		if err := client.RemoveContainer(ctx, c.GetId()); err != nil {
			return err
		}
	}
	return client.RemovePodSandbox(ctx, sandbox)
}
