package crisim

import runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

// Sandbox is a sandbox as the runtime sees it. The messages are shared: do not change them.
type Sandbox struct {
	Status *runtimeapi.PodSandboxStatus
	Config *runtimeapi.PodSandboxConfig // as it was asked for
}

// Container is a container as the runtime sees it. The messages are shared: do not change them.
type Container struct {
	Status    *runtimeapi.ContainerStatus
	Config    *runtimeapi.ContainerConfig // as it was asked for (with Config.Lean, in part)
	SandboxID string
	Pod       *runtimeapi.PodSandboxMetadata
}

// Sandboxes returns all sandboxes, the oldest first.
func (r *Runtime) Sandboxes() []Sandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Sandbox, 0, r.store.sandboxes.len())
	r.store.sandboxes.each(func(b *sandbox) { out = append(out, Sandbox{Status: b.status(), Config: b.config}) })
	return out
}

// Containers returns all containers, the oldest first.
func (r *Runtime) Containers() []Container {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Container, 0, r.store.containers.len())
	r.store.containers.each(func(c *container) { out = append(out, c.view()) })
	return out
}

// Container returns the container with that ID.
func (r *Runtime) Container(id string) (found Container, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.store.containers.get(id)
	if !ok {
		return Container{}, false
	}
	return c.view(), true
}

// Find returns the newest container of that name in a pod; pod is a UID, "namespace/name" or name.
func (r *Runtime) Find(pod, name string) (found Container, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	look := func(c *container) {
		m := c.sandbox.config.GetMetadata()
		if c.config.GetMetadata().GetName() == name && (pod == m.GetUid() || pod == m.GetName() || pod == m.GetNamespace()+"/"+m.GetName()) {
			found, ok = c.view(), true
		}
	}
	if r.store.containers.ofPod(pod, look); !ok {
		r.store.containers.each(look)
	}
	return found, ok
}

func (c *container) view() Container {
	return Container{Status: c.status(), Config: c.config, SandboxID: c.sandbox.id, Pod: c.sandbox.config.GetMetadata()}
}
