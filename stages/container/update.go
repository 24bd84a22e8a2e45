package container

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

// Update gives a running container the resources that the pod's spec has for
// it, and reads what it shows then. That it could not be read is no error.
func (c *Containers) Update(ctx context.Context, s *pod.State, ct *v1.Container, id string) (pod.Facts, error) {
	if err := c.Runtime.UpdateContainerResources(ctx, id, c.resources(s.Pod(), ct)); err != nil {
		return nil, retried(fmt.Errorf("changing the resources of container %s: %w", ct.Name, err))
	}
	status, err := c.Runtime.ContainerStatus(ctx, id)
	if err != nil {
		return nil, nil
	}
	now := crifact.ContainerStatus(status)
	if was, ok := s.Newest(ct.Name); ok && was.ID == id {
		now.SandboxID = was.SandboxID
	}
	c.Finish(&now, status)
	return seen(s, now), nil
}
