package cgroup_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/stages/cgroup"
)

func TestReservedPartsOfTheMachineAreLimited(t *testing.T) {
	m, root := fake(t, true, "cpu", "memory", "pids", "hugetlb")
	v := cgroup.Values{CPUShares: 1024, Memory: 1 << 30, Pids: 1000}
	require.ErrorContains(t, m.LimitReserved(t.Context(), "/sys/daemons", v), "cgroup /sys/daemons, which is to be limited to what is reserved for it, does not exist")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "sys/daemons"), 0o755))
	require.NoError(t, m.LimitReserved(t.Context(), "/sys/daemons", v))
	got := files(t, root)
	require.Equal(t, "39", got["sys/daemons/cpu.weight"])
	require.Equal(t, "1073741824", got["sys/daemons/memory.max"])
	require.Equal(t, "1000", got["sys/daemons/pids.max"])
}

func TestNamesInTheDriversSpelling(t *testing.T) {
	for at, want := range map[string]string{"/system.slice": "/system.slice", "/a.slice/a-b.slice": "/a.slice/a-b.slice", "a-b.slice": "/a.slice/a-b.slice"} {
		require.Equal(t, want, cgroup.Existing(at, cgroup.Systemd).Path(cgroup.Systemd), at)
	}
	require.Equal(t, "/a/b-c", cgroup.Existing("/a//b-c/", cgroup.Cgroupfs).Path(cgroup.Cgroupfs))
}
