package crisim

import (
	"fmt"

	"github.com/distribution/reference"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Kill ends the process of a running container from outside the CRI.
func (r *Runtime) Kill(id string, e Exit) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.store.containers.get(id)
	if !ok {
		return fmt.Errorf("kill container %s: no such container", id)
	}
	if c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return fmt.Errorf("kill container %s: it is in state %s", id, c.state)
	}
	r.exit(c, e)
	return nil
}

// KillSandbox ends the process of a sandbox: it is no longer ready, its containers live on until they are stopped.
func (r *Runtime) KillSandbox(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, ok := r.store.sandboxes.get(id)
	if !ok {
		return fmt.Errorf("kill sandbox %s: no such sandbox", id)
	}
	if b.ready {
		b.ready, b.listed = false, nil
		r.publish(runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT, b.id, b)
	}
	return nil
}

// LoseTrack puts a running container into the state UNKNOWN, as after a failure of the runtime's own bookkeeping. It stays
// there until it is stopped or removed. There is no event.
func (r *Runtime) LoseTrack(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.store.containers.get(id)
	if !ok || c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return fmt.Errorf("lose track of container %s: no such container is running", id)
	}
	r.record(c, codeUnknown, reasonUnknown, "")
	c.state, c.finished = runtimeapi.ContainerState_CONTAINER_UNKNOWN, 0
	return nil
}

// DropAddresses takes the addresses from a sandbox that stays ready. There is no event.
func (r *Runtime) DropAddresses(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, ok := r.store.sandboxes.get(id)
	if !ok || len(b.ips) == 0 {
		return fmt.Errorf("drop addresses of sandbox %s: no such sandbox has any", id)
	}
	b.ips = nil
	r.store.inUse--
	return nil
}

// Down makes the runtime unreachable: connections and streams are cut, new calls get Unavailable. Processes go on.
func (r *Runtime) Down() {
	r.gate.set(true)
	r.CloseEventStreams(errCut)
}

// Up makes it reachable again.
func (r *Runtime) Up() { r.gate.set(false) }

// Restart cuts all connections and streams and is back at once, with all that it knew.
func (r *Runtime) Restart() {
	r.Down()
	r.Up()
}

// Reboot is a restart of the machine: nothing runs any more and nothing was reported. Running containers are exited with
// code 255 and reason Unknown, sandboxes are not ready and have no address.
func (r *Runtime) Reboot() {
	r.Down()
	defer r.Up()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hub.kept = nil
	r.store.containers.each(func(c *container) {
		if c.state == runtimeapi.ContainerState_CONTAINER_RUNNING {
			r.record(c, codeUnknown, reasonUnknown, "")
		}
	})
	r.store.sandboxes.each(func(b *sandbox) {
		b.ready, b.listed, b.ips = false, nil, nil
	})
	r.store.inUse = 0
}

// SetNetwork makes the pod network ready or not; sandboxes that exist keep their addresses.
func (r *Runtime) SetNetwork(ready bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store.network = ready
}

// Forget drops a sandbox with its containers, or one container, without a trace: no event, no stop.
func (r *Runtime) Forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.store.containers.get(id); ok {
		r.forgetContainer(c)
		return
	}
	b, ok := r.store.sandboxes.get(id)
	if !ok {
		return
	}
	for len(b.members) > 0 {
		r.forgetContainer(b.members[0])
	}
	if len(b.ips) > 0 {
		r.store.inUse--
	}
	r.store.dropSandbox(b)
}

func (r *Runtime) forgetContainer(c *container) {
	if c.state == runtimeapi.ContainerState_CONTAINER_RUNNING {
		r.record(c, codeUnknown, reasonUnknown, "")
	}
	r.store.dropContainer(c)
}

// SetImage changes the script of an image reference, and with Present makes it present; it never removes an image.
func (r *Runtime) SetImage(ref string, script Image) error {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return fmt.Errorf("image %q: %w", ref, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store.images.scripts[named.String()] = script
	if script.Present {
		r.store.images.add(named)
	}
	return nil
}

// SetLatency changes the latency of a method from the next call on; nil is none.
func (r *Runtime) SetLatency(method string, l Latency) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latencies[method] = l
}

// SetEventFaults garbles the events from now on; those delayed already keep their time.
func (r *Runtime) SetEventFaults(f EventFaults) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hub.faults = f
}

// CloseEventStreams ends every open event stream; nil ends them properly.
func (r *Runtime) CloseEventStreams(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hub.cutAll(err)
}

// EventStreams is the number of open event streams.
func (r *Runtime) EventStreams() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.hub.readers)
}

// AddressesInUse is the number of sandboxes that hold pod addresses.
func (r *Runtime) AddressesInUse() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.store.inUse
}
