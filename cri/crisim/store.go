package crisim

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// labelPodUID is the label by which a node agent finds what belongs to a pod; lists filtered by it are cheap.
const labelPodUID = "io.kubernetes.pod.uid"

// store is everything the runtime knows. Its methods want Runtime.mu held.
type store struct {
	sandboxes  table[*sandbox]
	containers table[*container]
	images     images
	names      map[string]string // reserved name to the ID of its holder
	network    bool              // ready
	addresses  int               // handed out so far
	inUse      int
	taken      codes.Code // for a name that is in use
}

func newStore(cfg Config) store {
	return store{
		sandboxes: newTable[*sandbox](), containers: newTable[*container](), images: newImages(cfg.Images),
		names: map[string]string{}, network: true, taken: cfg.NameTaken,
	}
}

type sandbox struct {
	id, name  string
	config    *runtimeapi.PodSandboxConfig
	handler   string
	scripts   scripts
	ready     bool
	created   int64
	ips       []string // empty for the host network and once stopped
	members   []*container
	listed    *runtimeapi.PodSandbox // as last listed; nil after a change
	resources *runtimeapi.LinuxContainerResources
}

type container struct {
	id, name  string
	sandbox   *sandbox
	config    *runtimeapi.ContainerConfig
	image     *image
	state     runtimeapi.ContainerState
	created   int64
	started   int64
	finished  int64
	exitCode  int32
	reason    string
	message   string
	resources *runtimeapi.LinuxContainerResources
	starting  bool
	removing  bool
	termSent  bool
	process   *process              // nil unless something is scheduled, waited for or written
	script    *Script               // nil for the default behaviour
	listed    *runtimeapi.Container // as last listed; nil after a change
}

// reserve gives name to id; a name in use is refused with the text and code of containerd.
func (s *store) reserve(kind, name, id string) error {
	if holder, taken := s.names[name]; taken {
		return status.Errorf(s.taken, "failed to reserve %s name %q: name %q is reserved for %q", kind, name, name, holder)
	}
	s.names[name] = id
	return nil
}

// release gives the name back if id holds it.
func (s *store) release(name, id string) {
	if s.names[name] == id {
		delete(s.names, name)
	}
}

func sandboxName(m *runtimeapi.PodSandboxMetadata) string {
	return strings.Join([]string{m.GetName(), m.GetNamespace(), m.GetUid(), strconv.FormatUint(uint64(m.GetAttempt()), 10)}, "_")
}

func containerName(c *runtimeapi.ContainerMetadata, pod *runtimeapi.PodSandboxMetadata) string {
	return strings.Join([]string{
		c.GetName(), pod.GetName(), pod.GetNamespace(), pod.GetUid(), strconv.FormatUint(uint64(c.GetAttempt()), 10),
	}, "_")
}

// addSandbox, addContainer, dropContainer and dropSandbox keep the indexes together.
func (s *store) addSandbox(b *sandbox) {
	s.sandboxes.add(b.id, b.config.GetLabels()[labelPodUID], b)
}

func (s *store) addContainer(c *container) {
	s.containers.add(c.id, c.config.GetLabels()[labelPodUID], c)
	c.sandbox.members = append(c.sandbox.members, c)
}

func (s *store) dropContainer(c *container) {
	s.containers.remove(c.id)
	s.release(c.name, c.id)
	for i, other := range c.sandbox.members {
		if other == c {
			c.sandbox.members = append(c.sandbox.members[:i:i], c.sandbox.members[i+1:]...)
			return
		}
	}
}

func (s *store) dropSandbox(b *sandbox) {
	s.sandboxes.remove(b.id)
	s.release(b.name, b.id)
}

// assignIPs gives a pod-network sandbox its addresses: 10.88.0.0/13 counted upwards, and fd00:88:: beside it.
func (s *store) assignIPs(dual bool) []string {
	s.addresses++
	s.inUse++
	n := s.addresses
	ips := []string{fmt.Sprintf("10.%d.%d.%d", 88+n>>16&7, n>>8&255, n&255)}
	if dual {
		ips = append(ips, fmt.Sprintf("fd00:88::%x:%x", n>>16, n&0xffff))
	}
	return ips
}

// newID makes an ID of 64 hex digits; r.mu is held.
func (r *Runtime) newID() string {
	return fmt.Sprintf("%016x%016x%016x%016x", r.rng.Uint64(), r.rng.Uint64(), r.rng.Uint64(), r.rng.Uint64())
}

// sandboxTarget and containerTarget describe an object for the call log and the faults, also when it does not exist.
func (r *Runtime) sandboxTarget(method, id string) Target {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := Target{Method: method, Object: id}
	if b, ok := r.store.sandboxes.get(id); ok {
		t = podTarget(method, b.config.GetMetadata())
		t.Object = id
	}
	return t
}

func (r *Runtime) containerTarget(method, id string) Target {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := Target{Method: method, Object: id}
	if c, ok := r.store.containers.get(id); ok {
		t = podTarget(method, c.sandbox.config.GetMetadata())
		t.Container, t.Attempt, t.Object = c.config.GetMetadata().GetName(), c.config.GetMetadata().GetAttempt(), id
	}
	return t
}

func podTarget(method string, m *runtimeapi.PodSandboxMetadata) Target {
	return Target{Method: method, UID: m.GetUid(), Namespace: m.GetNamespace(), Pod: m.GetName(), Attempt: m.GetAttempt()}
}
