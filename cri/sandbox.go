package cri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// RunPodSandbox makes and starts a sandbox; handler "" is the runtime's default. It returns the sandbox's ID.
// Not idempotent: a name (name, namespace, UID, attempt) that is in use gives AlreadyExists.
func (c *Client) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (id string, err error) {
	d := call{method: "RunPodSandbox", object: podName(config), timeout: c.timeouts.Sandbox}
	resp, err := invoke(ctx, c, d, c.runtime.RunPodSandbox, &runtimeapi.RunPodSandboxRequest{Config: config, RuntimeHandler: handler})
	return resp.GetPodSandboxId(), err
}

// StopPodSandbox kills what runs in the sandbox and releases its network. Idempotent; an unknown ID is success.
func (c *Client) StopPodSandbox(ctx context.Context, id string) error {
	d := call{method: "StopPodSandbox", object: short(id), timeout: c.timeouts.Call, gone: true}
	_, err := invoke(ctx, c, d, c.runtime.StopPodSandbox, &runtimeapi.StopPodSandboxRequest{PodSandboxId: id})
	return err
}

// RemovePodSandbox removes the sandbox with its containers. Idempotent; an unknown ID is success.
func (c *Client) RemovePodSandbox(ctx context.Context, id string) error {
	d := call{method: "RemovePodSandbox", object: short(id), timeout: c.timeouts.Call, gone: true}
	_, err := invoke(ctx, c, d, c.runtime.RemovePodSandbox, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: id})
	return err
}

// PodSandboxStatus reads one sandbox; NotFound when there is none.
func (c *Client) PodSandboxStatus(ctx context.Context, id string) (*runtimeapi.PodSandboxStatus, error) {
	d := call{method: "PodSandboxStatus", object: short(id), timeout: c.timeouts.Call}
	resp, err := invoke(ctx, c, d, c.runtime.PodSandboxStatus, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id})
	return resp.GetStatus(), err
}

// UpdatePodSandboxResources tells the runtime about new pod-level resources; older runtimes give ErrUnsupported.
func (c *Client) UpdatePodSandboxResources(ctx context.Context, req *runtimeapi.UpdatePodSandboxResourcesRequest) error {
	d := call{method: "UpdatePodSandboxResources", object: short(req.GetPodSandboxId()), timeout: c.timeouts.Call}
	_, err := invoke(ctx, c, d, c.runtime.UpdatePodSandboxResources, req)
	return err
}

// PortForward prepares a stream to ports of a sandbox and returns its URL at the runtime.
func (c *Client) PortForward(ctx context.Context, req *runtimeapi.PortForwardRequest) (url string, err error) {
	d := call{method: "PortForward", object: short(req.GetPodSandboxId()), timeout: c.timeouts.Call}
	resp, err := invoke(ctx, c, d, c.runtime.PortForward, req)
	return resp.GetUrl(), err
}

func podName(config *runtimeapi.PodSandboxConfig) string {
	m := config.GetMetadata()
	return m.GetNamespace() + "/" + m.GetName()
}

// short cuts an ID to the 13 characters that other tools print.
func short(id string) string {
	const length = 13
	return id[:min(len(id), length)]
}
