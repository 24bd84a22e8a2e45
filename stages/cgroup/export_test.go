package cgroup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/cgroups"
)

// PodUID reads a UID from a directory name.
var PodUID = podUID

// Reserve makes the manager protect requested memory.
func (m *Manager) Reserve() { m.config.Limits.Memory = MemoryQoS{On: true, Tiered: true} }

// Existing reads a name from a driver's spelling.
var Existing = existing

// OnPlainFiles makes directories of cgroup v2 without the kernel.
func (m *Manager) OnPlainFiles() {
	m.kernel.(*library).makeV2 = func(path string, _ *cgroups.Cgroup) error {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(path, "cgroup.controllers"), []byte("cpu memory pids hugetlb\n"), 0o600)
	}
}

// SystemdUnit is what the library is given with the systemd driver, on a
// machine with all controllers.
func SystemdUnit(t *testing.T, v2 bool, v Values, components ...string) (slice, parent string, r *cgroups.Resources) {
	t.Helper()
	m := &Manager{tree: Tree{V2: v2, Mounts: map[string]string{"cpu": "/", "memory": "/", "pids": "/", "hugetlb": "/"}}}
	l := &library{tree: m.tree, driver: Systemd}
	parent, slice = Name(components).unit()
	return slice, parent, l.resources(m.possible(v))
}
