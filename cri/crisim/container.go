package crisim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CreateContainer implements the CRI.
func (r *runtimeServer) CreateContainer(ctx context.Context, req *runtimeapi.CreateContainerRequest) (*runtimeapi.CreateContainerResponse, error) {
	config, pod := req.GetConfig(), req.GetSandboxConfig()
	target := podTarget("CreateContainer", pod.GetMetadata())
	target.Container, target.Attempt, target.Object = config.GetMetadata().GetName(), config.GetMetadata().GetAttempt(), req.GetPodSandboxId()
	c := &container{config: config, name: containerName(config.GetMetadata(), pod.GetMetadata())}
	return serve(ctx, r.Runtime, op[*runtimeapi.CreateContainerResponse]{
		target:  target,
		slot:    true,
		prepare: func() error { return r.prepareContainer(c, req) },
		abort:   func(error) { r.store.release(c.name, c.id) },
		effect: func(context.Context) (*runtimeapi.CreateContainerResponse, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if err := r.createContainer(c); err != nil {
				return nil, err
			}
			return &runtimeapi.CreateContainerResponse{ContainerId: c.id}, nil
		},
		made: (*runtimeapi.CreateContainerResponse).GetContainerId,
	})
}

func (r *Runtime) prepareContainer(c *container, req *runtimeapi.CreateContainerRequest) error {
	b, ok := r.store.sandboxes.get(req.GetPodSandboxId())
	switch {
	case !ok:
		return notFound("failed to find sandbox id %q", req.GetPodSandboxId())
	case !b.ready:
		return fmt.Errorf("sandbox container %q is not running", b.id)
	case c.config.GetMetadata() == nil:
		return errors.New("container config must include metadata")
	case req.GetSandboxConfig().GetMetadata() == nil:
		return errors.New("pod sandbox config must include metadata")
	}
	all, err := b.scripts.orParse(req.GetSandboxConfig().GetAnnotations())
	if err != nil {
		return err
	}
	c.id, c.sandbox = r.newID(), b
	c.script = all.of(c.config.GetMetadata())
	return r.store.reserve("container", c.name, c.id)
}

func (r *Runtime) createContainer(c *container) error {
	if !c.sandbox.ready {
		return fmt.Errorf("sandbox container %q is not running", c.sandbox.id)
	}
	ref := c.config.GetImage().GetImage()
	if c.image = r.store.images.find(ref); c.image == nil {
		return notFound("failed to resolve image %q", ref)
	}
	for _, m := range c.config.GetMounts() {
		if volume := m.GetImage().GetImage(); volume != "" && r.store.images.find(volume) == nil {
			return notFound("failed to resolve image %q of the mount at %s", volume, m.GetContainerPath())
		}
	}
	if r.cfg.Lean {
		c.config.Envs, c.config.Command, c.config.Args, c.config.Devices, c.config.CDIDevices = nil, nil, nil, nil, nil
	}
	c.resources = c.config.GetLinux().GetResources()
	c.state, c.created = runtimeapi.ContainerState_CONTAINER_CREATED, time.Now().UnixNano()
	r.store.addContainer(c)
	r.publish(runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, c.id, c.sandbox)
	return nil
}

// StartContainer implements the CRI.
func (r *runtimeServer) StartContainer(ctx context.Context, req *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	var c *container
	return serve(ctx, r.Runtime, op[*runtimeapi.StartContainerResponse]{
		target: r.containerTarget("StartContainer", req.GetContainerId()),
		slot:   true,
		prepare: func() (err error) {
			c, err = r.store.startable(req.GetContainerId())
			if err == nil {
				c.starting = true
			}
			return err
		},
		abort: func(err error) {
			c.starting = false
			if isContextEnd(err) {
				c.failStart(err)
			}
		},
		effect: func(context.Context) (*runtimeapi.StartContainerResponse, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			c.starting = false
			if err := r.start(c); err != nil {
				return nil, err
			}
			return &runtimeapi.StartContainerResponse{}, nil
		},
	})
}

// startable returns the container if it may be started now: only out of CREATED, only once at a time.
func (s *store) startable(id string) (*container, error) {
	c, ok := s.containers.get(id)
	switch {
	case !ok:
		return nil, notFound("an error occurred when try to find container %q", id)
	case c.state != runtimeapi.ContainerState_CONTAINER_CREATED:
		return nil, fmt.Errorf("failed to set starting state for container %q: container is in %s state", id, c.state)
	case c.removing:
		return nil, fmt.Errorf("failed to set starting state for container %q: container is in removing state, can't be started", id)
	case c.starting:
		return nil, fmt.Errorf("failed to set starting state for container %q: container is already in starting state", id)
	}
	return c, nil
}

// RemoveContainer implements the CRI.
func (r *runtimeServer) RemoveContainer(ctx context.Context, req *runtimeapi.RemoveContainerRequest) (*runtimeapi.RemoveContainerResponse, error) {
	id := req.GetContainerId()
	return serve(ctx, r.Runtime, op[*runtimeapi.RemoveContainerResponse]{
		target: r.containerTarget("RemoveContainer", id),
		slot:   true,
		effect: func(ctx context.Context) (*runtimeapi.RemoveContainerResponse, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			c, ok := r.store.containers.get(id)
			if !ok {
				return &runtimeapi.RemoveContainerResponse{}, nil
			}
			if c.alive() {
				r.kill(c)
				if err := r.awaitExit(ctx, c); err != nil {
					return nil, fmt.Errorf("failed to forcibly stop container %q: %w", id, err)
				}
			}
			if c.starting {
				return nil, fmt.Errorf("failed to set removing state for container %q: container is in starting state, can't be removed", id)
			}
			r.dropContainer(c)
			return &runtimeapi.RemoveContainerResponse{}, nil
		},
	})
}

// dropContainer forgets a container; gone twice is gone.
func (r *Runtime) dropContainer(c *container) {
	if _, ok := r.store.containers.get(c.id); !ok {
		return
	}
	c.removing = true
	r.store.dropContainer(c)
	r.publish(runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT, c.id, c.sandbox)
}

// ContainerStatus implements the CRI.
func (r *runtimeServer) ContainerStatus(ctx context.Context, req *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.ContainerStatusResponse]{
		target: r.containerTarget("ContainerStatus", req.GetContainerId()),
		effect: func(context.Context) (*runtimeapi.ContainerStatusResponse, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			c, ok := r.store.containers.get(req.GetContainerId())
			if !ok {
				return nil, notFound("an error occurred when try to find container %q", req.GetContainerId())
			}
			return &runtimeapi.ContainerStatusResponse{Status: c.status()}, nil
		},
	})
}

// status is a message of its own; what it points to does not change.
func (c *container) status() *runtimeapi.ContainerStatus {
	s := &runtimeapi.ContainerStatus{
		Id: c.id, Metadata: c.config.GetMetadata(), State: c.state, CreatedAt: c.created,
		Image: &runtimeapi.ImageSpec{Image: c.image.name()}, ImageRef: c.image.ref(), ImageId: c.image.id,
		Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(), Mounts: c.config.GetMounts(), LogPath: c.logPath(),
		StopSignal: runtimeapi.Signal_SIGNAL_SIGTERM,
	}
	if sig := c.config.GetStopSignal(); sig != runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
		s.StopSignal = sig
	}
	if c.resources != nil {
		s.Resources = &runtimeapi.ContainerResources{Linux: c.resources}
	}
	if c.state == runtimeapi.ContainerState_CONTAINER_RUNNING {
		s.StartedAt = c.started
	}
	if c.state == runtimeapi.ContainerState_CONTAINER_EXITED || c.state == runtimeapi.ContainerState_CONTAINER_UNKNOWN {
		s.StartedAt, s.FinishedAt = c.started, c.finished
		s.ExitCode, s.Reason, s.Message = c.exitCode, c.reason, c.message
	}
	return s
}

// UpdateContainerResources implements the CRI: fields that are set replace the old ones.
func (r *runtimeServer) UpdateContainerResources(ctx context.Context, req *runtimeapi.UpdateContainerResourcesRequest) (*runtimeapi.UpdateContainerResourcesResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.UpdateContainerResourcesResponse]{
		target: r.containerTarget("UpdateContainerResources", req.GetContainerId()),
		slot:   true,
		effect: func(context.Context) (*runtimeapi.UpdateContainerResourcesResponse, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			c, ok := r.store.containers.get(req.GetContainerId())
			if !ok {
				return nil, notFound("failed to find container")
			}
			merged := &runtimeapi.LinuxContainerResources{}
			if c.resources != nil {
				proto.Merge(merged, c.resources)
			}
			if req.GetLinux() != nil {
				proto.Merge(merged, req.GetLinux())
			}
			c.resources = merged
			return &runtimeapi.UpdateContainerResourcesResponse{}, nil
		},
	})
}
