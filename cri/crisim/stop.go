package crisim

import (
	"context"
	"errors"
	"fmt"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// StopContainer implements the CRI.
func (r *runtimeServer) StopContainer(ctx context.Context, req *runtimeapi.StopContainerRequest) (*runtimeapi.StopContainerResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.StopContainerResponse]{
		target: r.containerTarget("StopContainer", req.GetContainerId()),
		slot:   true,
		effect: func(ctx context.Context) (*runtimeapi.StopContainerResponse, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			c, ok := r.store.containers.get(req.GetContainerId())
			if !ok {
				return &runtimeapi.StopContainerResponse{}, nil
			}
			return &runtimeapi.StopContainerResponse{}, r.stop(ctx, c, time.Duration(req.GetTimeout())*time.Second)
		},
	})
}

// stop sends the stop signal, gives the process grace to end and kills it. A second stop of the same container does not
// signal again, but keeps to its own grace, so that a shorter one ends the process sooner.
func (r *Runtime) stop(ctx context.Context, c *container, grace time.Duration) error {
	if !c.alive() {
		return nil
	}
	if grace > 0 && c.state == runtimeapi.ContainerState_CONTAINER_RUNNING {
		r.terminate(c)
		patience, cancel := context.WithTimeoutCause(ctx, grace, errGraceOver)
		defer cancel()
		err := r.awaitExit(patience, c)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
	}
	if c.alive() {
		r.kill(c)
	}
	if err := r.awaitExit(ctx, c); err != nil {
		return fmt.Errorf("an error occurs during waiting for container %q to be killed: %w", c.id, err)
	}
	return nil
}

var errGraceOver = errors.New("grace period is over")
