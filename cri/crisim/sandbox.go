package crisim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// RunPodSandbox implements the CRI.
func (r *runtimeServer) RunPodSandbox(ctx context.Context, req *runtimeapi.RunPodSandboxRequest) (*runtimeapi.RunPodSandboxResponse, error) {
	config := req.GetConfig()
	b := &sandbox{config: config, handler: req.GetRuntimeHandler(), name: sandboxName(config.GetMetadata())}
	return serve(ctx, r.Runtime, op[*runtimeapi.RunPodSandboxResponse]{
		target: podTarget("RunPodSandbox", config.GetMetadata()),
		slot:   true,
		prepare: func() (err error) {
			if config.GetMetadata() == nil {
				return errors.New("sandbox config must include metadata")
			}
			b.id = r.newID()
			if b.scripts, err = parseScripts(config.GetAnnotations()); err != nil {
				return err
			}
			return r.store.reserve("sandbox", b.name, b.id)
		},
		abort: func(error) { r.store.release(b.name, b.id) },
		effect: func(context.Context) (*runtimeapi.RunPodSandboxResponse, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if err := r.runSandbox(b); err != nil {
				return nil, err
			}
			return &runtimeapi.RunPodSandboxResponse{PodSandboxId: b.id}, nil
		},
		made: (*runtimeapi.RunPodSandboxResponse).GetPodSandboxId,
	})
}

func (r *Runtime) runSandbox(b *sandbox) error {
	if b.handler != "" && !slices.Contains(r.cfg.Handlers, b.handler) {
		return fmt.Errorf("unable to get OCI runtime for sandbox %q: no runtime for %q is configured", b.id, b.handler)
	}
	if !hostNetwork(b.config) {
		if !r.store.network {
			return fmt.Errorf("failed to setup network for sandbox %q: cni plugin not initialized", b.id)
		}
		b.ips = r.store.assignIPs(r.cfg.DualStack)
	}
	b.ready, b.created = true, time.Now().UnixNano()
	r.store.addSandbox(b)
	r.publish(runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, b.id, b)
	r.publish(runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT, b.id, b)
	return nil
}

func hostNetwork(config *runtimeapi.PodSandboxConfig) bool {
	return config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE
}

// StopPodSandbox implements the CRI.
func (r *runtimeServer) StopPodSandbox(ctx context.Context, req *runtimeapi.StopPodSandboxRequest) (*runtimeapi.StopPodSandboxResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.StopPodSandboxResponse]{
		target: r.sandboxTarget("StopPodSandbox", req.GetPodSandboxId()),
		slot:   true,
		effect: func(ctx context.Context) (*runtimeapi.StopPodSandboxResponse, error) {
			return &runtimeapi.StopPodSandboxResponse{}, r.stopSandbox(ctx, req.GetPodSandboxId())
		},
	})
}

// stopSandbox kills what runs in a sandbox, waits for it, and releases the network. An unknown ID is success.
func (r *Runtime) stopSandbox(ctx context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, ok := r.store.sandboxes.get(id)
	if !ok {
		return nil
	}
	for _, c := range slices.Clone(b.members) {
		if !c.alive() {
			continue
		}
		r.kill(c)
		if err := r.awaitExit(ctx, c); err != nil {
			return fmt.Errorf("failed to stop container %q: %w", c.id, err)
		}
	}
	r.endSandbox(b)
	return nil
}

func (r *Runtime) endSandbox(b *sandbox) {
	if len(b.ips) > 0 {
		b.ips = nil
		r.store.inUse--
	}
	if b.ready {
		b.ready, b.listed = false, nil
		r.publish(runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT, b.id, b)
	}
}

// RemovePodSandbox implements the CRI.
func (r *runtimeServer) RemovePodSandbox(ctx context.Context, req *runtimeapi.RemovePodSandboxRequest) (*runtimeapi.RemovePodSandboxResponse, error) {
	id := req.GetPodSandboxId()
	return serve(ctx, r.Runtime, op[*runtimeapi.RemovePodSandboxResponse]{
		target: r.sandboxTarget("RemovePodSandbox", id),
		slot:   true,
		effect: func(ctx context.Context) (*runtimeapi.RemovePodSandboxResponse, error) {
			if err := r.stopSandbox(ctx, id); err != nil {
				return nil, fmt.Errorf("failed to forcibly stop sandbox %q: %w", id, err)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			b, ok := r.store.sandboxes.get(id)
			if !ok {
				return &runtimeapi.RemovePodSandboxResponse{}, nil
			}
			for _, c := range slices.Clone(b.members) {
				r.dropContainer(c)
			}
			r.publish(runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT, b.id, b)
			r.store.dropSandbox(b)
			return &runtimeapi.RemovePodSandboxResponse{}, nil
		},
	})
}

// PodSandboxStatus implements the CRI.
func (r *runtimeServer) PodSandboxStatus(ctx context.Context, req *runtimeapi.PodSandboxStatusRequest) (*runtimeapi.PodSandboxStatusResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.PodSandboxStatusResponse]{
		target: r.sandboxTarget("PodSandboxStatus", req.GetPodSandboxId()),
		effect: func(context.Context) (*runtimeapi.PodSandboxStatusResponse, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			b, ok := r.store.sandboxes.get(req.GetPodSandboxId())
			if !ok {
				return nil, notFound("an error occurred when try to find sandbox")
			}
			return &runtimeapi.PodSandboxStatusResponse{Status: b.status()}, nil
		},
	})
}

// status is a message of its own; what it points to does not change.
func (b *sandbox) status() *runtimeapi.PodSandboxStatus {
	network := &runtimeapi.PodSandboxNetworkStatus{}
	for i, ip := range b.ips {
		if i == 0 {
			network.Ip = ip
			continue
		}
		network.AdditionalIps = append(network.AdditionalIps, &runtimeapi.PodIP{Ip: ip})
	}
	return &runtimeapi.PodSandboxStatus{
		Id: b.id, Metadata: b.config.GetMetadata(), State: b.state(), CreatedAt: b.created, Network: network,
		Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{
			Options: b.config.GetLinux().GetSecurityContext().GetNamespaceOptions(),
		}},
		Labels: b.config.GetLabels(), Annotations: b.config.GetAnnotations(), RuntimeHandler: b.handler,
	}
}

func (b *sandbox) state() runtimeapi.PodSandboxState {
	if b.ready {
		return runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
}

// UpdatePodSandboxResources implements the CRI.
func (r *runtimeServer) UpdatePodSandboxResources(ctx context.Context, req *runtimeapi.UpdatePodSandboxResourcesRequest) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.UpdatePodSandboxResourcesResponse]{
		target: r.sandboxTarget("UpdatePodSandboxResources", req.GetPodSandboxId()),
		slot:   true,
		effect: func(context.Context) (*runtimeapi.UpdatePodSandboxResourcesResponse, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			b, ok := r.store.sandboxes.get(req.GetPodSandboxId())
			if !ok {
				return nil, notFound("failed to find sandbox")
			}
			b.resources = req.GetResources()
			return &runtimeapi.UpdatePodSandboxResourcesResponse{}, nil
		},
	})
}
