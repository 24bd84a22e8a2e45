package cgroup

import (
	"maps"
	"slices"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/fs"
	"github.com/opencontainers/cgroups/fs2"
	"github.com/opencontainers/cgroups/manager"
)

// kernel is how cgroups are written: by the library, or not at all.
type kernel interface {
	apply(n Name, v Values) error // makes it and its parents
	remove(n Name) error          // with all below it; nil when it is gone
}

// library writes through opencontainers/cgroups.
type library struct {
	tree   Tree
	driver Driver
	// makeV2 makes a directory of cgroup v2 with the controllers of its
	// parent; tests on a tree of plain files replace it.
	makeV2 func(path string, c *cgroups.Cgroup) error
}

var _ kernel = (*library)(nil)

func (l *library) manager(n Name, v Values) (cgroups.Manager, *cgroups.Cgroup, error) {
	c := &cgroups.Cgroup{Resources: l.resources(v)}
	if l.driver == Systemd {
		c.Systemd = true
		c.Parent, c.Name = n.unit()
		m, err := manager.New(c)
		return m, c, err
	}
	c.Path = n.Path(l.driver)
	if l.tree.V2 {
		m, err := fs2.NewManager(c, l.tree.dirs(c.Path)[0])
		return m, c, err
	}
	paths := map[string]string{}
	for controller, mount := range l.tree.Mounts {
		paths[controller] = mount + c.Path
	}
	m, err := fs.NewManager(c, paths)
	return m, c, err
}

func (l *library) apply(n Name, v Values) error {
	m, c, err := l.manager(n, v)
	if err != nil {
		return err
	}
	if l.tree.V2 && l.driver != Systemd {
		err = l.makeV2(m.Path(""), c)
	} else {
		err = m.Apply(-1) // no process of ours moves into it
	}
	if err != nil {
		return err
	}
	return m.Set(c.Resources)
}

func (l *library) remove(n Name) error {
	m, _, err := l.manager(n, Values{})
	if err != nil {
		return err
	}
	return m.Destroy()
}

// resources translates for the library. Device rules are the containers'
// matter, and freezing all processes to set a limit would stop a whole pod.
func (l *library) resources(v Values) *cgroups.Resources {
	r := &cgroups.Resources{
		SkipDevices:     true,
		SkipFreezeOnSet: true,
		CpuQuota:        v.CPUQuota,
		CpuPeriod:       v.CPUPeriod,
		Memory:          v.Memory,
		Unified:         v.Unified,
	}
	if l.tree.V2 {
		r.CpuWeight = Weight(v.CPUShares)
	} else {
		r.CpuShares = v.CPUShares
	}
	if v.Pids > 0 {
		r.PidsLimit = &v.Pids
	}
	for _, size := range slices.Sorted(maps.Keys(v.HugePages)) {
		r.HugetlbLimit = append(r.HugetlbLimit, &cgroups.HugepageLimit{Pagesize: size, Limit: v.HugePages[size]})
	}
	return r
}

// nothing is the kernel of a node without cgroups of ours.
type nothing struct{}

func (nothing) apply(Name, Values) error { return nil }
func (nothing) remove(Name) error        { return nil }
