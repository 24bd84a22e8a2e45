package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/internal/config"
	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/cgroup"
)

// cgroups asks the runtime for its cgroup driver when the first cgroup is
// needed, so that a runtime that is away at the start is waited for. A runtime
// that cannot tell leaves the choice to the configuration.
type cgroups struct {
	config      *config.Config
	runtime     *cri.Client
	tree        cgroup.Tree
	allocatable v1.ResourceList
	log         *slog.Logger
	// pods returns the pods that have room on the node.
	pods func() []*v1.Pod

	mu   sync.Mutex
	m    *cgroup.Manager
	node bool // the node's own cgroups are made

	levels sync.Mutex // held while the levels above pods are written
	demand cgroup.Demand
}

var _ Cgroups = (*cgroups)(nil)

// Ensure makes the pod's cgroup, and before the first one those of the node.
func (c *cgroups) Ensure(ctx context.Context, p *v1.Pod) error {
	m, err := c.manager(ctx)
	if err != nil {
		return err
	}
	if err := c.ensureNode(ctx, m); err != nil {
		c.log.Warn("limits on all pods together are not in place; it is tried again", "error", err) // no reason to hold up a pod
	}
	c.follow(ctx, m, p, "")
	return m.Ensure(ctx, p)
}

// follow keeps the levels above pods in line with what pods request: those
// that have room, and one that is coming, without one that is leaving. It is
// tried again with the next pod, which a failure does not hold up.
func (c *cgroups) follow(ctx context.Context, m *cgroup.Manager, coming *v1.Pod, leaving types.UID) {
	c.levels.Lock()
	defer c.levels.Unlock()
	var d cgroup.Demand
	if coming != nil {
		d = d.Add(coming)
		leaving = coming.UID
	}
	for _, p := range c.pods() {
		if p.UID != leaving {
			d = d.Add(p)
		}
	}
	if d == c.demand {
		return
	}
	if err := m.SetDemand(ctx, d); err != nil {
		c.log.Warn("cgroups of the QoS levels", "error", err)
		return
	}
	c.demand = d
}

// Raise gives the pod's cgroup what it has more of than before.
func (c *cgroups) Raise(ctx context.Context, from, to *v1.Pod) error {
	m, err := c.manager(ctx)
	if err != nil {
		return err
	}
	return m.Raise(ctx, from, to)
}

// Memory returns the limit of the pod's cgroup and what is used of it.
func (c *cgroups) Memory(ctx context.Context, p *v1.Pod) (limit, used int64, err error) {
	m, err := c.manager(ctx)
	if err != nil {
		return 0, 0, err
	}
	return m.Memory(ctx, p)
}

// Remove removes the pod's cgroup.
func (c *cgroups) Remove(ctx context.Context, s *pod.State) error {
	m, err := c.manager(ctx)
	if err != nil {
		return err
	}
	if err := m.Remove(ctx, s); err != nil {
		return err
	}
	c.follow(ctx, m, nil, s.UID())
	return nil
}

// PodUIDs lists the pods that have a cgroup.
func (c *cgroups) PodUIDs(ctx context.Context) ([]types.UID, error) {
	m, err := c.manager(ctx)
	if err != nil {
		return nil, err
	}
	return m.PodUIDs()
}

// ParentFor names the pod's cgroup in the driver's spelling; empty before the
// first Ensure.
func (c *cgroups) ParentFor(p *v1.Pod) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		return ""
	}
	return c.m.ParentFor(p)
}

// memory returns a pod's memory limit in bytes, 0 for none. It needs no answer
// of the runtime: volumes in memory are mounted beside the first cgroup.
func (c *cgroups) memory(p *v1.Pod) int64 { return cgroup.PodValues(p, c.limits()).Memory }

func (c *cgroups) limits() cgroup.Limits {
	k := c.config.Kubelet
	return cgroup.Limits{
		CFSQuota: *k.CPUCFSQuota, CFSPeriod: cfsPeriod(c.config), PodPids: *k.PodPidsLimit, Memory: memoryQoS(c.config, c.tree.V2),
	}
}

// cfsPeriod is the period of CPU limits.
func cfsPeriod(c *config.Config) time.Duration {
	if !c.Gates.Enabled("CustomCPUCFSQuotaPeriod") {
		return crifact.DefaultPeriod
	}
	return c.Kubelet.CPUCFSQuotaPeriod.Duration
}

func memoryQoS(c *config.Config, v2 bool) cgroup.MemoryQoS {
	return cgroup.MemoryQoS{
		On:        v2 && c.Gates.Enabled("MemoryQoS"),
		Tiered:    c.Kubelet.MemoryReservationPolicy == kubeletconfig.TieredReservationMemoryReservationPolicy,
		Throttled: c.Kubelet.MemoryThrottlingFactor,
	}
}

func (c *cgroups) manager(ctx context.Context) (*cgroup.Manager, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m != nil {
		return c.m, nil
	}
	driver, err := c.driver(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the runtime for its cgroup driver: %w", err)
	}
	k := c.config.Kubelet
	cfg := cgroup.Config{
		Root: k.CgroupRoot, Driver: driver, PerQOS: *k.CgroupsPerQOS,
		Limits: c.limits(),
	}
	if c.config.EnforcesPods() {
		cfg.Node = cgroup.NodeValues(c.allocatable)
	}
	m, err := cgroup.New(cfg, c.tree)
	if err != nil {
		return nil, err
	}
	for _, text := range m.Degraded() {
		c.log.Warn(text)
	}
	c.m = m
	return m, nil
}

func (c *cgroups) ensureNode(ctx context.Context, m *cgroup.Manager) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.node {
		return nil
	}
	errs := []error{m.EnsureNode(ctx)}
	for _, part := range c.config.EnforcedParts() {
		if err := m.LimitReserved(ctx, part.Cgroup, cgroup.NodeValues(part.Reserved)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", part.Field, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	c.node = true
	return nil
}

// enforce makes the node's own cgroups, or brings them up to date, when the
// agent starts, and tries again until it is done.
func (c *cgroups) enforce(ctx context.Context) error {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(time.Second), backoff.WithMaxInterval(time.Minute),
		backoff.WithRandomizationFactor(0), backoff.WithMaxElapsedTime(0))
	told := false
	try := func() error {
		m, err := c.manager(ctx)
		if err == nil {
			err = c.ensureNode(ctx, m)
		}
		if err != nil && !told && m != nil { // a runtime that is away is told elsewhere
			told = true
			c.log.Warn("limits on all pods together are not in place; it is tried again", "error", err)
		}
		return err
	}
	if err := backoff.Retry(try, backoff.WithContext(b, ctx)); err != nil {
		return nil //nolint:nilerr // the agent ends
	}
	if c.config.EnforcesPods() {
		c.log.Info("updated the limits on all pods together", "allocatable", c.allocatable)
	}
	return nil
}

func (c *cgroups) driver(ctx context.Context) (cgroup.Driver, error) {
	rc, err := c.runtime.RuntimeConfig(ctx)
	switch {
	case errors.Is(err, cri.ErrUnsupported), err == nil && rc.GetLinux() == nil:
		return cgroup.Driver(c.config.Kubelet.CgroupDriver), nil
	case err != nil:
		return "", err
	case rc.GetLinux().GetCgroupDriver() == runtimeapi.CgroupDriver_SYSTEMD:
		return cgroup.Systemd, nil
	}
	return cgroup.Cgroupfs, nil
}

// usedMemory is what all pods use and may use; 0 for both before the first pod.
func (c *cgroups) usedMemory() (used, limit int64, err error) {
	c.mu.Lock()
	m := c.m
	c.mu.Unlock()
	if m == nil {
		return 0, 0, nil
	}
	return m.MemoryUse()
}
