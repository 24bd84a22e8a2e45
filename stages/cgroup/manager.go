package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/fs2"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/qos"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

// Config says where pods live and what limits them.
type Config struct {
	// Root is the field cgroupRoot; empty means "/".
	Root   string
	Driver Driver
	// PerQOS is the field cgroupsPerQOS. Without it there are no cgroups of
	// pods: containers are made below Root.
	PerQOS bool
	Limits Limits
	// Node limits all pods together; zero fields do not. The caller subtracts
	// what is reserved, when it is to be enforced.
	Node Values
}

// Manager makes and removes the cgroups of pods.
type Manager struct {
	config Config
	root   Name // cgroupRoot
	base   Name // kubepods below it
	tree   Tree
	kernel kernel
}

// BusyError says that a pod's cgroup cannot be removed yet.
type BusyError struct {
	UID  types.UID
	Path string
	PIDs []int
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("cgroup %s of pod %s still holds processes %v; it is removed when they have ended", e.Path, e.UID, e.PIDs)
}

// New returns a Manager for this machine. Huge page sizes are looked up when
// the configuration has none.
func New(c Config, t Tree) (*Manager, error) {
	m, err := NewNop(c)
	if err != nil {
		return nil, err
	}
	if m.config.Limits.PageSizes == nil {
		m.config.Limits.PageSizes = cgroups.HugePageSizes()
	}
	if !t.has("hugetlb") {
		m.config.Limits.PageSizes = nil
	}
	m.tree = t
	m.kernel = &library{tree: t, driver: c.Driver, makeV2: fs2.CreateCgroupPath}
	return m, nil
}

// NewNop returns a Manager that knows all names and touches nothing: for the
// simulated runtime and for an agent without the right to make cgroups.
func NewNop(c Config) (*Manager, error) {
	if c.Driver != Cgroupfs && c.Driver != Systemd {
		return nil, fmt.Errorf("cgroup driver %q is neither %s nor %s", c.Driver, Cgroupfs, Systemd)
	}
	root, err := rootName(c.Root, c.Driver)
	if err != nil {
		return nil, err
	}
	return &Manager{config: c, root: root, base: root.child(kubepods), kernel: nothing{}}, nil
}

// Degraded names the controllers that the machine lacks and what does not work
// without them: one sentence each, for a warning.
func (m *Manager) Degraded() []string {
	if m.isNop() {
		return nil
	}
	var out []string
	for _, c := range []struct{ controller, without string }{
		{"cpu", "CPU requests do not weigh and pods with a CPU limit cannot start"},
		{"memory", "pods with a memory limit cannot start"},
		{"pids", "podPidsLimit cannot be enforced"},
		{"cpuset", "CPUs cannot be assigned"},
	} {
		if !m.tree.has(c.controller) {
			out = append(out, fmt.Sprintf("this machine has no cgroup controller %s: %s", c.controller, c.without))
		}
	}
	return out
}

func (m *Manager) isNop() bool { return m.kernel == kernel(nothing{}) || !m.config.PerQOS }

// EnsureNode makes kubepods and the QoS levels, or brings their values up to
// date. A limit that the kernel refuses because pods use more already is an
// error worth trying again; the cgroups exist then.
func (m *Manager) EnsureNode(ctx context.Context) error {
	if m.isNop() {
		return nil
	}
	pages := unlimitedPages(m.config.Limits.PageSizes)
	node := m.config.Node
	if !m.tree.has("pids") {
		node.Pids = 0
	}
	if !m.tree.has("memory") {
		node.Memory = 0
	}
	if m.tree.V2 && !m.config.Limits.Memory.Reserves() {
		node.Unified = map[string]string{memoryMin: "0", memoryLow: "0"} // it may have been otherwise before
	}
	var errs []error
	for _, level := range []struct {
		name   Name
		values Values
	}{
		{m.base, node},
		{qosLevel(m.base, corev1.PodQOSBurstable), Values{HugePages: pages}},
		{qosLevel(m.base, corev1.PodQOSBestEffort), Values{CPUShares: crifact.MinShares, HugePages: pages}},
	} {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := m.kernel.apply(level.name, m.possible(level.values)); err != nil {
			errs = append(errs, fmt.Errorf("making cgroup %s: %w", level.name.Path(m.config.Driver), err))
		}
	}
	return errors.Join(errs...)
}

// SetDemand brings the levels above pods in line with what the pods request
// together: the weight of the Burstable level and, where requested memory is
// protected, the protection of its parents, without which that of a pod is none.
func (m *Manager) SetDemand(_ context.Context, d Demand) error {
	if m.isNop() {
		return nil
	}
	base, burstable := d.levels(m.config.Limits.Memory)
	var errs []error
	for _, level := range []struct {
		name   Name
		values Values
	}{{m.base, base}, {qosLevel(m.base, corev1.PodQOSBurstable), burstable}} {
		if level.values.CPUShares == 0 && level.values.Unified == nil {
			continue
		}
		if err := m.kernel.apply(level.name, m.possible(level.values)); err != nil {
			errs = append(errs, fmt.Errorf("setting what cgroup %s weighs: %w", level.name.Path(m.config.Driver), err))
		}
	}
	return errors.Join(errs...)
}

// ParentFor returns the parent of the pod's containers as the runtime is told
// in cgroup_parent.
func (m *Manager) ParentFor(p *corev1.Pod) string {
	name := m.root
	if m.config.PerQOS {
		name = qosLevel(m.base, qos.GetPodQOS(p)).child(podPrefix + string(p.UID))
	}
	return name.Path(m.config.Driver)
}

// Values returns what Ensure writes for the pod.
func (m *Manager) Values(p *corev1.Pod) Values { return PodValues(p, m.config.Limits) }

// Ensure makes the pod's cgroup, or brings its values up to date.
func (m *Manager) Ensure(_ context.Context, p *corev1.Pod) error {
	who := p.Namespace + "/" + p.Name
	component, err := podComponent(p.UID)
	if err != nil {
		return fmt.Errorf("cgroup of pod %s: %w", who, err)
	}
	if m.isNop() {
		return nil
	}
	name := qosLevel(m.base, qos.GetPodQOS(p)).child(component)
	v := m.Values(p)
	if missing := m.missing(v); len(missing) > 0 {
		return fmt.Errorf("cgroup of pod %s: the pod has limits for which this machine lacks the cgroup controllers %s", who, strings.Join(missing, ", "))
	}
	if err := m.kernel.apply(name, m.possible(v)); err != nil {
		return fmt.Errorf("cgroup %s of pod %s: %w", name.Path(m.config.Driver), who, err)
	}
	return nil
}

// Raise gives the cgroup of a pod whose resources change what it has more of
// than before; what it has less of, Ensure takes. A limit that is lifted stays.
func (m *Manager) Raise(_ context.Context, from, to *corev1.Pod) error {
	if m.isNop() {
		return nil
	}
	component, err := podComponent(to.UID)
	if err != nil {
		return err
	}
	v := raised(m.Values(from), m.Values(to))
	if v.CPUShares == 0 && v.CPUQuota == 0 && v.Memory == 0 {
		return nil
	}
	name := qosLevel(m.base, qos.GetPodQOS(to)).child(component)
	if err := m.kernel.apply(name, m.possible(v)); err != nil {
		return fmt.Errorf("cgroup %s of pod %s/%s: %w", name.Path(m.config.Driver), to.Namespace, to.Name, err)
	}
	return nil
}

func raised(from, to Values) Values {
	var v Values
	if to.CPUShares > from.CPUShares {
		v.CPUShares = to.CPUShares
	}
	if from.CPUQuota > 0 && to.CPUQuota > from.CPUQuota {
		v.CPUQuota, v.CPUPeriod = to.CPUQuota, to.CPUPeriod
	}
	if from.Memory > 0 && to.Memory > from.Memory {
		v.Memory = to.Memory
	}
	return v
}

// Memory returns the memory limit of a pod's cgroup, 0 for none, and what is
// used of it now; a cgroup that is not there uses nothing.
func (m *Manager) Memory(_ context.Context, p *corev1.Pod) (limit, used int64, err error) {
	limit = m.Values(p).Memory
	component, err := podComponent(p.UID)
	if err != nil || m.isNop() {
		return limit, 0, err
	}
	used, err = m.tree.memory(qosLevel(m.base, qos.GetPodQOS(p)).child(component).Path(m.config.Driver))
	return limit, used, err
}

// missing lists the controllers without which a limit would not hold.
func (m *Manager) missing(v Values) []string {
	var out []string
	for _, c := range []struct {
		needed     bool
		controller string
	}{
		{v.CPUQuota > 0, "cpu"}, {v.Memory > 0, "memory"}, {v.Pids > 0, "pids"},
	} {
		if c.needed && !m.tree.has(c.controller) {
			out = append(out, c.controller)
		}
	}
	return out
}

// possible drops what has no controller and limits nothing.
func (m *Manager) possible(v Values) Values {
	if !m.tree.has("cpu") {
		v.CPUShares, v.CPUQuota, v.CPUPeriod = 0, 0, 0
	}
	if !m.tree.has("hugetlb") {
		v.HugePages = nil
	}
	if !m.tree.V2 || !m.tree.has("memory") {
		v.Unified = nil
	}
	return v
}

// Remove is RemovePod for the pod that s is about, after its sandbox was
// stopped. What still runs belongs to no container that the runtime knows: a
// start that was cut off leaves such a process. It is killed, and the next
// call finds the cgroup empty.
func (m *Manager) Remove(ctx context.Context, s *pod.State) error {
	err := m.RemovePod(ctx, s.UID())
	var busy *BusyError
	if errors.As(err, &busy) {
		err = errors.Join(err, kill(busy.PIDs))
	}
	if err != nil {
		return fmt.Errorf("pod %s: %w", s.FullName(), err)
	}
	return nil
}

// kill sends SIGKILL. A process of another PID namespace is shown as 0, and
// cannot be reached.
func kill(pids []int) error {
	var errs []error
	for _, pid := range pids {
		if pid <= 1 {
			continue
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("killing process %d: %w", pid, err))
		}
	}
	return errors.Join(errs...)
}

// RemovePod removes all cgroups of that UID, under whatever QoS level they are
// found, with what is left of containers in them. It fails with a *BusyError
// while processes are in one, and succeeds when there is none.
func (m *Manager) RemovePod(ctx context.Context, uid types.UID) error {
	component, err := podComponent(uid)
	if err != nil {
		return err
	}
	if m.isNop() {
		return nil
	}
	for _, class := range []corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort} {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		name := qosLevel(m.base, class).child(component)
		cgroupPath := name.Path(m.config.Driver)
		if !m.tree.exists(cgroupPath) {
			continue
		}
		pids, err := m.tree.pids(cgroupPath)
		if err != nil {
			return fmt.Errorf("pod %s: %w", uid, err)
		}
		if len(pids) > 0 {
			return &BusyError{UID: uid, Path: cgroupPath, PIDs: pids}
		}
		if err := m.kernel.remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing cgroup %s of pod %s: %w", cgroupPath, uid, err)
		}
	}
	return nil
}

// PodUIDs lists the pods that have a cgroup in any hierarchy, sorted.
func (m *Manager) PodUIDs() ([]types.UID, error) {
	if m.isNop() {
		return nil, nil
	}
	var out []types.UID
	for _, class := range []corev1.PodQOSClass{corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort} {
		names, err := m.tree.children(qosLevel(m.base, class).Path(m.config.Driver))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if uid, ok := podUID(path.Base(name), m.config.Driver); ok {
				out = append(out, uid)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// RemoveNode removes kubepods and its levels. It refuses while any process is
// in them, and is for the end of tests and of an agent that leaves the node.
func (m *Manager) RemoveNode(_ context.Context) error {
	if m.isNop() {
		return nil
	}
	cgroupPath := m.base.Path(m.config.Driver)
	pids, err := m.tree.pids(cgroupPath)
	if err != nil {
		return err
	}
	if len(pids) > 0 {
		return fmt.Errorf("cgroup %s still holds processes %v", cgroupPath, pids)
	}
	for _, class := range []corev1.PodQOSClass{corev1.PodQOSBurstable, corev1.PodQOSBestEffort, corev1.PodQOSGuaranteed} {
		if err := m.kernel.remove(qosLevel(m.base, class)); err != nil {
			return fmt.Errorf("removing cgroup %s: %w", cgroupPath, err)
		}
	}
	return nil
}
