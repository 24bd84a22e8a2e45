package cri

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CreateContainer makes a container in a ready sandbox and returns its ID. Not idempotent: a name (container, pod name,
// namespace, UID, attempt) that is in use gives AlreadyExists.
func (c *Client) CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, pod *runtimeapi.PodSandboxConfig) (id string, err error) {
	d := call{method: "CreateContainer", object: podName(pod) + "/" + config.GetMetadata().GetName(), timeout: c.timeouts.Call}
	resp, err := invoke(ctx, c, d, c.runtime.CreateContainer,
		&runtimeapi.CreateContainerRequest{PodSandboxId: sandbox, Config: config, SandboxConfig: pod})
	return resp.GetContainerId(), err
}

// StartContainer starts a created container. Not idempotent: one that has been started is refused.
func (c *Client) StartContainer(ctx context.Context, id string) error {
	d := call{method: "StartContainer", object: short(id), timeout: c.timeouts.Call}
	_, err := invoke(ctx, c, d, c.runtime.StartContainer, &runtimeapi.StartContainerRequest{ContainerId: id})
	return err
}

// StopContainer sends the stop signal, waits for at most grace and kills. It returns when the container has ended.
// The interface counts grace in whole seconds: fractions are rounded up, a negative grace is 0. The deadline is grace
// plus Timeouts.Call. Idempotent; an unknown ID is success.
func (c *Client) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	grace = max(grace, 0)
	d := call{method: "StopContainer", object: short(id), timeout: grace + c.timeouts.Call, gone: true}
	_, err := invoke(ctx, c, d, c.runtime.StopContainer, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: seconds(grace)})
	return err
}

// RemoveContainer removes a container, killing it if it runs. Idempotent; an unknown ID is success.
func (c *Client) RemoveContainer(ctx context.Context, id string) error {
	d := call{method: "RemoveContainer", object: short(id), timeout: c.timeouts.Call, gone: true}
	_, err := invoke(ctx, c, d, c.runtime.RemoveContainer, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	return err
}

// ContainerStatus reads one container; NotFound when there is none.
func (c *Client) ContainerStatus(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error) {
	d := call{method: "ContainerStatus", object: short(id), timeout: c.timeouts.Call}
	resp, err := invoke(ctx, c, d, c.runtime.ContainerStatus, &runtimeapi.ContainerStatusRequest{ContainerId: id})
	return resp.GetStatus(), err
}

// UpdateContainerResources changes the resources of a container in place.
func (c *Client) UpdateContainerResources(ctx context.Context, id string, resources *runtimeapi.LinuxContainerResources) error {
	d := call{method: "UpdateContainerResources", object: short(id), timeout: c.timeouts.Call}
	_, err := invoke(ctx, c, d, c.runtime.UpdateContainerResources, &runtimeapi.UpdateContainerResourcesRequest{ContainerId: id, Linux: resources})
	return err
}

// ReopenContainerLog makes the runtime open the container's log file anew, after it was renamed.
func (c *Client) ReopenContainerLog(ctx context.Context, id string) error {
	d := call{method: "ReopenContainerLog", object: short(id), timeout: c.timeouts.Call}
	_, err := invoke(ctx, c, d, c.runtime.ReopenContainerLog, &runtimeapi.ReopenContainerLogRequest{ContainerId: id})
	return err
}

// ExecResult is what a command run by ExecSync left.
type ExecResult struct {
	Stdout, Stderr []byte
	ExitCode       int32
}

// ExecSync runs a command in a running container. A command that ends with a code other than 0 is a result, not an
// error. timeout is kept by the runtime, which kills the command and answers Deadline; it counts in whole seconds,
// rounded up. With timeout 0 there is none, and no deadline but the caller's.
func (c *Client) ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (ExecResult, error) {
	d := call{method: "ExecSync", object: short(id)}
	if timeout > 0 {
		d.timeout = timeout + c.timeouts.Call
	}
	resp, err := invoke(ctx, c, d, c.runtime.ExecSync,
		&runtimeapi.ExecSyncRequest{ContainerId: id, Cmd: command, Timeout: seconds(timeout)})
	return ExecResult{Stdout: resp.GetStdout(), Stderr: resp.GetStderr(), ExitCode: resp.GetExitCode()}, err
}

// Exec prepares a stream to a command in a container and returns its URL at the runtime.
func (c *Client) Exec(ctx context.Context, req *runtimeapi.ExecRequest) (url string, err error) {
	d := call{method: "Exec", object: short(req.GetContainerId()), timeout: c.timeouts.Call}
	resp, err := invoke(ctx, c, d, c.runtime.Exec, req)
	return resp.GetUrl(), err
}

// Attach prepares a stream to the process of a container and returns its URL at the runtime.
func (c *Client) Attach(ctx context.Context, req *runtimeapi.AttachRequest) (url string, err error) {
	d := call{method: "Attach", object: short(req.GetContainerId()), timeout: c.timeouts.Call}
	resp, err := invoke(ctx, c, d, c.runtime.Attach, req)
	return resp.GetUrl(), err
}

// CheckpointContainer writes a checkpoint of a running container to location. The runtime's own timeout is timeout in
// whole seconds, rounded up, and its default when 0; the deadline is timeout plus Timeouts.Call.
func (c *Client) CheckpointContainer(ctx context.Context, id, location string, timeout time.Duration) error {
	d := call{method: "CheckpointContainer", object: short(id), timeout: max(timeout, 0) + c.timeouts.Call}
	_, err := invoke(ctx, c, d, c.runtime.CheckpointContainer,
		&runtimeapi.CheckpointContainerRequest{ContainerId: id, Location: location, Timeout: seconds(timeout)})
	return err
}

// ContainerStats reads the resource use of one container.
func (c *Client) ContainerStats(ctx context.Context, id string) (*runtimeapi.ContainerStats, error) {
	d := call{method: "ContainerStats", object: short(id), timeout: c.timeouts.Call}
	resp, err := invoke(ctx, c, d, c.runtime.ContainerStats, &runtimeapi.ContainerStatsRequest{ContainerId: id})
	return resp.GetStats(), err
}

func seconds(d time.Duration) int64 { return int64((max(d, 0) + time.Second - 1) / time.Second) }
