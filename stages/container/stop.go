package container

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

// leastGrace is what every container gets between TERM and KILL, however
// little is left of the pod's grace (kubelet v1.37.2).
const leastGrace = 2 * time.Second

// Stop stops a container within grace from now, 2 s at the least, and learns
// how it ended. why is told in an event; empty, the event names the container.
// A container that the runtime does not know is gone.
func (c *Containers) Stop(ctx context.Context, s *pod.State, ct pod.Container, grace time.Duration, why string) (pod.Facts, error) {
	if why == "" {
		why = "Stopping container " + ct.Name
	}
	c.event(s, ct.Name, v1.EventTypeNormal, "Killing", why)
	if err := c.Runtime.StopContainer(ctx, ct.ID, max(grace, leastGrace)); err != nil && !crifact.NotFound(err) {
		return nil, pod.WithReason(reasonKill, retried(fmt.Errorf("stopping container %s: %w", ct.Name, err)))
	}
	status, err := c.Runtime.ContainerStatus(ctx, ct.ID)
	if crifact.NotFound(err) {
		return pod.Facts{pod.ContainerRemoved{ID: ct.ID}}, nil
	}
	if err != nil {
		ct.State, ct.Unknown, ct.Detailed, ct.Exit = pod.Exited, false, false, pod.Exit{}
		err = crifact.Written(fmt.Errorf("reading container %s, just stopped: %w", ct.Name, err), true)
		return seen(s, ct), pod.WithReason(reasonKill, retried(err))
	}
	now := crifact.ContainerStatus(status)
	now.SandboxID = ct.SandboxID
	c.Finish(&now, status)
	if now.State != pod.Exited {
		err = pod.WithReason(reasonKill, fmt.Errorf("container %s was stopped, but the runtime says that it is %s", ct.Name, status.GetState()))
	}
	return seen(s, now), err
}

// Remove removes a container with its log files, the rotated ones too. The
// files go first: nobody would find them later. Those of a container that is
// reset stay, as the logs of the attempt before, until the next reset or the end
// of the pod; the link to them goes, since by then nobody may know it.
func (c *Containers) Remove(ctx context.Context, s *pod.State, ct pod.Container) (pod.Facts, error) {
	if ct.Reset {
		c.unlink(s.Identity, ct)
	} else if err := c.removeLog(ctx, s, ct); err != nil {
		return nil, err
	}
	if err := c.Runtime.RemoveContainer(ctx, ct.ID); err != nil && !crifact.NotFound(err) {
		return nil, retried(fmt.Errorf("removing container %s: %w", ct.Name, err))
	}
	return pod.Facts{pod.ContainerRemoved{ID: ct.ID}}, nil
}

func (c *Containers) removeLog(ctx context.Context, s *pod.State, ct pod.Container) error {
	if ct.LogPath == "" {
		status, err := c.Runtime.ContainerStatus(ctx, ct.ID)
		if err != nil && !crifact.NotFound(err) {
			return retried(fmt.Errorf("looking for the log of container %s, which is to be removed: %w", ct.Name, err))
		}
		ct.LogPath = status.GetLogPath()
	}
	if err := removeLogs(ct.LogPath); err != nil {
		return fmt.Errorf("removing the log of container %s: %w", ct.Name, err)
	}
	c.unlink(s.Identity, ct)
	return nil
}
