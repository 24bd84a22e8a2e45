package crisim

import (
	"context"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ListContainerStats implements the CRI: of the containers that run and match.
func (r *runtimeServer) ListContainerStats(ctx context.Context, req *runtimeapi.ListContainerStatsRequest) (*runtimeapi.ListContainerStatsResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.ListContainerStatsResponse]{
		target: Target{Method: "ListContainerStats"},
		effect: func(context.Context) (*runtimeapi.ListContainerStatsResponse, error) {
			resp, f := &runtimeapi.ListContainerStatsResponse{}, req.GetFilter()
			r.eachRunning(func(c *container) {
				if (f.GetId() == "" || f.GetId() == c.id) && (f.GetPodSandboxId() == "" || f.GetPodSandboxId() == c.sandbox.id) &&
					subset(f.GetLabelSelector(), c.config.GetLabels()) {
					resp.Stats = append(resp.Stats, c.stats())
				}
			})
			return resp, nil
		},
	})
}

// ContainerStats implements the CRI.
func (r *runtimeServer) ContainerStats(ctx context.Context, req *runtimeapi.ContainerStatsRequest) (*runtimeapi.ContainerStatsResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.ContainerStatsResponse]{
		target: r.containerTarget("ContainerStats", req.GetContainerId()),
		effect: func(context.Context) (*runtimeapi.ContainerStatsResponse, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			c, ok := r.store.containers.get(req.GetContainerId())
			if !ok {
				return nil, notFound("failed to find container: %q", req.GetContainerId())
			}
			return &runtimeapi.ContainerStatsResponse{Stats: c.stats()}, nil
		},
	})
}

// ListPodSandboxStats implements the CRI, with the number of processes and nothing else.
func (r *runtimeServer) ListPodSandboxStats(ctx context.Context, _ *runtimeapi.ListPodSandboxStatsRequest) (*runtimeapi.ListPodSandboxStatsResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.ListPodSandboxStatsResponse]{
		target: Target{Method: "ListPodSandboxStats"},
		effect: func(context.Context) (*runtimeapi.ListPodSandboxStatsResponse, error) {
			processes := map[*sandbox]int64{}
			r.eachRunning(func(c *container) { processes[c.sandbox] += c.use().Processes })
			resp := &runtimeapi.ListPodSandboxStatsResponse{}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.store.sandboxes.each(func(b *sandbox) {
				resp.Stats = append(resp.Stats, &runtimeapi.PodSandboxStats{
					Attributes: &runtimeapi.PodSandboxAttributes{
						Id: b.id, Metadata: b.config.GetMetadata(), Labels: b.config.GetLabels(), Annotations: b.config.GetAnnotations(),
					},
					Linux: &runtimeapi.LinuxPodSandboxStats{Process: &runtimeapi.ProcessUsage{
						Timestamp: time.Now().UnixNano(), ProcessCount: number(processes[b]),
					}},
				})
			})
			return resp, nil
		},
	})
}

func (r *Runtime) eachRunning(visit func(c *container)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store.containers.each(func(c *container) {
		if c.state == runtimeapi.ContainerState_CONTAINER_RUNNING {
			visit(c)
		}
	})
}

// use is what the script says of the container's use by now.
func (c *container) use() UseScript {
	var u UseScript
	if c.script == nil || c.started == 0 {
		return u
	}
	end := c.finished
	if end == 0 {
		end = time.Now().UnixNano()
	}
	for _, step := range c.script.Use {
		if end-c.started >= int64(step.From) {
			u = step
		}
	}
	if c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		u.Memory, u.Processes = UseScript{}.Memory, 0
	}
	return u
}

func (c *container) stats() *runtimeapi.ContainerStats {
	now, u := time.Now().UnixNano(), c.use()
	return &runtimeapi.ContainerStats{
		Attributes: &runtimeapi.ContainerAttributes{
			Id: c.id, Metadata: c.config.GetMetadata(), Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
		},
		Memory: &runtimeapi.MemoryUsage{
			Timestamp: now, WorkingSetBytes: number(u.Memory.Value()), UsageBytes: number(u.Memory.Value()), RssBytes: number(u.Memory.Value()),
		},
		WritableLayer: &runtimeapi.FilesystemUsage{
			Timestamp: now, FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: imageFs},
			UsedBytes: number(u.Disk.Value()), InodesUsed: number(u.Inodes),
		},
	}
}

func number(n int64) *runtimeapi.UInt64Value {
	return &runtimeapi.UInt64Value{Value: uint64(max(0, n))}
} //nolint:gosec // not negative

// LogBytes is what the newest container of that name has in log files, by its script.
func (r *Runtime) LogBytes(uid, container string) int64 {
	u := r.usesOf(uid, container)
	if len(u) == 0 {
		return 0
	}
	return u[len(u)-1].Logs.Value()
}

// VolumeBytes is what the containers of a pod have written to a volume, by their scripts.
func (r *Runtime) VolumeBytes(uid, volume string) int64 {
	var sum int64
	for _, u := range r.usesOf(uid, "") {
		q := u.Volumes[volume]
		sum += q.Value()
	}
	return sum
}

func (r *Runtime) usesOf(uid, name string) []UseScript {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []UseScript
	r.store.containers.ofPod(uid, func(c *container) {
		if name == "" || c.config.GetMetadata().GetName() == name {
			out = append(out, c.use())
		}
	})
	return out
}

// MemoryBytes is the sum of the working sets of all containers.
func (r *Runtime) MemoryBytes() int64 {
	var sum int64
	r.eachRunning(func(c *container) { u := c.use(); sum += u.Memory.Value() })
	return sum
}

// Processes is the number of processes of all containers.
func (r *Runtime) Processes() int64 {
	var sum int64
	r.eachRunning(func(c *container) { sum += c.use().Processes })
	return sum
}

// DiskBytes is what images, layers, logs and volumes of containers take.
func (r *Runtime) DiskBytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sum int64
	for _, img := range r.store.images.order {
		sum += int64(img.size) //nolint:gosec // scripted
	}
	r.store.containers.each(func(c *container) {
		u := c.use()
		sum += u.Disk.Value() + u.Logs.Value()
		for _, q := range u.Volumes {
			sum += q.Value()
		}
	})
	return sum
}
