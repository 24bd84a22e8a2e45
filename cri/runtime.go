package cri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// apiVersion is what the kubelet sends and expects in the Version call; it is not the version of the interface.
const apiVersion = "0.1.0"

// Version reads the runtime's name and version.
func (c *Client) Version(ctx context.Context) (*runtimeapi.VersionResponse, error) {
	d := call{method: "Version", timeout: c.timeouts.Call}
	return invoke(ctx, c, d, c.runtime.Version, &runtimeapi.VersionRequest{Version: apiVersion})
}

// Status reads the conditions of the runtime (RuntimeReady, NetworkReady), its handlers and features.
func (c *Client) Status(ctx context.Context) (*runtimeapi.StatusResponse, error) {
	d := call{method: "Status", timeout: c.timeouts.Call}
	return invoke(ctx, c, d, c.runtime.Status, &runtimeapi.StatusRequest{})
}

// RuntimeConfig asks which cgroup driver the runtime uses; containerd before 2.0 gives ErrUnsupported.
func (c *Client) RuntimeConfig(ctx context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	d := call{method: "RuntimeConfig", timeout: c.timeouts.Call}
	return invoke(ctx, c, d, c.runtime.RuntimeConfig, &runtimeapi.RuntimeConfigRequest{})
}

// UpdateRuntimeConfig tells the runtime about the node, today its pod address range.
func (c *Client) UpdateRuntimeConfig(ctx context.Context, config *runtimeapi.RuntimeConfig) error {
	d := call{method: "UpdateRuntimeConfig", timeout: c.timeouts.Call}
	_, err := invoke(ctx, c, d, c.runtime.UpdateRuntimeConfig, &runtimeapi.UpdateRuntimeConfigRequest{RuntimeConfig: config})
	return err
}

// ListContainerStats reads the resource use of the containers that match filter; nil means all.
func (c *Client) ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	d := call{method: "ListContainerStats", timeout: c.timeouts.Call}
	resp, err := invoke(ctx, c, d, c.runtime.ListContainerStats, &runtimeapi.ListContainerStatsRequest{Filter: filter})
	return resp.GetStats(), err
}

// ListPodSandboxStats reads the resource use of the sandboxes that match filter; nil means all.
func (c *Client) ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	d := call{method: "ListPodSandboxStats", timeout: c.timeouts.Call}
	resp, err := invoke(ctx, c, d, c.runtime.ListPodSandboxStats, &runtimeapi.ListPodSandboxStatsRequest{Filter: filter})
	return resp.GetStats(), err
}
