package crisim

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ListPodSandbox implements the CRI.
func (r *runtimeServer) ListPodSandbox(ctx context.Context, req *runtimeapi.ListPodSandboxRequest) (*runtimeapi.ListPodSandboxResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.ListPodSandboxResponse]{
		target: Target{Method: "ListPodSandbox"},
		effect: func(context.Context) (*runtimeapi.ListPodSandboxResponse, error) {
			return &runtimeapi.ListPodSandboxResponse{Items: r.listSandboxes(req.GetFilter())}, nil
		},
	})
}

// StreamPodSandboxes implements the CRI.
func (r *runtimeServer) StreamPodSandboxes(req *runtimeapi.StreamPodSandboxesRequest, stream runtimeapi.RuntimeService_StreamPodSandboxesServer) error {
	return streamList(stream.Context(), r.Runtime, "StreamPodSandboxes",
		func() []*runtimeapi.PodSandbox { return r.listSandboxes(req.GetFilter()) },
		func(b []*runtimeapi.PodSandbox) error {
			return stream.Send(&runtimeapi.StreamPodSandboxesResponse{PodSandboxes: b})
		})
}

// ListContainers implements the CRI.
func (r *runtimeServer) ListContainers(ctx context.Context, req *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.ListContainersResponse]{
		target: Target{Method: "ListContainers"},
		effect: func(context.Context) (*runtimeapi.ListContainersResponse, error) {
			return &runtimeapi.ListContainersResponse{Containers: r.listContainers(req.GetFilter())}, nil
		},
	})
}

// StreamContainers implements the CRI.
func (r *runtimeServer) StreamContainers(req *runtimeapi.StreamContainersRequest, stream runtimeapi.RuntimeService_StreamContainersServer) error {
	return streamList(stream.Context(), r.Runtime, "StreamContainers",
		func() []*runtimeapi.Container { return r.listContainers(req.GetFilter()) },
		func(b []*runtimeapi.Container) error {
			return stream.Send(&runtimeapi.StreamContainersResponse{Containers: b})
		})
}

// streamList sends a list in batches.
func streamList[Item any](ctx context.Context, r *Runtime, method string, list func() []Item, send func([]Item) error) error {
	_, err := serve(ctx, r, op[struct{}]{
		target: Target{Method: method},
		effect: func(context.Context) (none struct{}, _ error) {
			if r.cfg.NoStreams {
				return none, unimplemented(method)
			}
			for items := list(); len(items) > 0; {
				n := min(r.cfg.StreamBatch, len(items))
				if err := send(items[:n]); err != nil {
					return none, err
				}
				items = items[n:]
			}
			return none, nil
		},
	})
	return err
}

// listSandboxes looks only at one sandbox or one pod when the filter names it.
func (r *Runtime) listSandboxes(f *runtimeapi.PodSandboxFilter) []*runtimeapi.PodSandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*runtimeapi.PodSandbox
	add := func(b *sandbox) {
		state := f.GetState()
		if (state != nil && state.GetState() != b.state()) || !subset(f.GetLabelSelector(), b.config.GetLabels()) {
			return
		}
		out = append(out, b.item())
	}
	t, uid := &r.store.sandboxes, f.GetLabelSelector()[labelPodUID]
	switch {
	case f.GetId() != "":
		if b, ok := t.get(f.GetId()); ok {
			add(b)
		}
	case uid != "":
		t.ofPod(uid, add)
	default:
		out = make([]*runtimeapi.PodSandbox, 0, t.len())
		t.each(add)
	}
	return out
}

// item is shared by all lists until the sandbox changes, and then replaced, never changed.
func (b *sandbox) item() *runtimeapi.PodSandbox {
	if b.listed == nil {
		b.listed = &runtimeapi.PodSandbox{
			Id: b.id, Metadata: b.config.GetMetadata(), State: b.state(), CreatedAt: b.created,
			Labels: b.config.GetLabels(), Annotations: b.config.GetAnnotations(), RuntimeHandler: b.handler,
		}
	}
	return b.listed
}

// listContainers looks only at one container, sandbox or pod when the filter names it.
func (r *Runtime) listContainers(f *runtimeapi.ContainerFilter) []*runtimeapi.Container {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*runtimeapi.Container
	add := func(c *container) {
		state, in := f.GetState(), f.GetPodSandboxId()
		if (state != nil && state.GetState() != c.state) || (in != "" && in != c.sandbox.id) || !subset(f.GetLabelSelector(), c.config.GetLabels()) {
			return
		}
		out = append(out, c.item())
	}
	t, uid := &r.store.containers, f.GetLabelSelector()[labelPodUID]
	switch {
	case f.GetId() != "":
		if c, ok := t.get(f.GetId()); ok {
			add(c)
		}
	case f.GetPodSandboxId() != "":
		if b, ok := r.store.sandboxes.get(f.GetPodSandboxId()); ok {
			for _, c := range b.members {
				add(c)
			}
		}
	case uid != "":
		t.ofPod(uid, add)
	default:
		out = make([]*runtimeapi.Container, 0, t.len())
		t.each(add)
	}
	return out
}

// item is shared by all lists until the container changes, and then replaced, never changed.
func (c *container) item() *runtimeapi.Container {
	if c.listed == nil {
		c.listed = &runtimeapi.Container{
			Id: c.id, PodSandboxId: c.sandbox.id, Metadata: c.config.GetMetadata(), Image: c.config.GetImage(),
			ImageRef: c.image.id, ImageId: c.image.id, State: c.state, CreatedAt: c.created,
			Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
		}
	}
	return c.listed
}

func subset(want, have map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}
