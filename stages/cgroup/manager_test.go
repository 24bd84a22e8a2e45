package cgroup_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/cgroups"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/stages/cgroup"
)

// The library writes to plain files in these tests.
func TestMain(m *testing.M) {
	cgroups.TestMode = true
	os.Exit(m.Run())
}

func fake(t *testing.T, v2 bool, controllers ...string) (*cgroup.Manager, string) {
	t.Helper()
	root := t.TempDir()
	tree := cgroup.Tree{V2: v2, Mounts: map[string]string{}}
	for _, c := range controllers {
		tree.Mounts[c] = root
		if !v2 {
			tree.Mounts[c] = filepath.Join(root, c)
			require.NoError(t, os.MkdirAll(tree.Mounts[c], 0o755))
		}
	}
	m, err := cgroup.New(cgroup.Config{
		Driver: cgroup.Cgroupfs, PerQOS: true, Root: "/test",
		Limits: cgroup.Limits{CFSQuota: true, PodPids: 50, PageSizes: []string{"2MB"}},
		Node:   cgroup.Values{CPUShares: 2048, Memory: 1 << 33, Pids: 1000},
	}, tree)
	require.NoError(t, err)
	if v2 {
		m.OnPlainFiles()
	}
	return m, root
}

// files reads all that was written below root.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "cgroup.controllers" {
			return err
		}
		data, err := os.ReadFile(path)
		out[strings.TrimPrefix(path, root+"/")] = strings.TrimSpace(string(data))
		return err
	}))
	return out
}

func TestWrittenValuesV1(t *testing.T) {
	m, root := fake(t, false, "cpu", "memory", "pids", "hugetlb")
	require.NoError(t, m.EnsureNode(t.Context()))
	require.NoError(t, m.Ensure(t.Context(), pod("500m", "500m", "1Gi", "1Gi")))
	require.NoError(t, m.Ensure(t.Context(), pod("500m", "500m", "1Gi", "1Gi")), "again")
	require.NoError(t, m.SetDemand(t.Context(), cgroup.Demand{BurstableCPU: 3000}))
	require.Empty(t, cmp.Diff(map[string]string{
		"cpu/test/kubepods/cpu.shares":                                  "2048",
		"cpu/test/kubepods/burstable/cpu.shares":                        "3072",
		"cpu/test/kubepods/besteffort/cpu.shares":                       "2",
		"cpu/test/kubepods/pod12ab-34cd/cpu.shares":                     "512",
		"cpu/test/kubepods/pod12ab-34cd/cpu.cfs_quota_us":               "50000",
		"cpu/test/kubepods/pod12ab-34cd/cpu.cfs_period_us":              "100000",
		"memory/test/kubepods/memory.limit_in_bytes":                    "8589934592",
		"memory/test/kubepods/pod12ab-34cd/memory.limit_in_bytes":       "1073741824",
		"pids/test/kubepods/pids.max":                                   "1000",
		"pids/test/kubepods/pod12ab-34cd/pids.max":                      "50",
		"hugetlb/test/kubepods/burstable/hugetlb.2MB.limit_in_bytes":    "4611686018427387904",
		"hugetlb/test/kubepods/besteffort/hugetlb.2MB.limit_in_bytes":   "4611686018427387904",
		"hugetlb/test/kubepods/pod12ab-34cd/hugetlb.2MB.limit_in_bytes": "0",
	}, withoutReservation(files(t, root))))
}

func TestWrittenValuesV2(t *testing.T) {
	m, root := fake(t, true, "cpu", "memory", "pids", "hugetlb")
	require.NoError(t, m.EnsureNode(t.Context()))
	require.NoError(t, m.Ensure(t.Context(), pod("500m", "1", "1Gi", "1Gi")))
	require.Empty(t, cmp.Diff(map[string]string{
		"test/kubepods/cpu.weight":                             "79",
		"test/kubepods/memory.max":                             "8589934592",
		"test/kubepods/pids.max":                               "1000",
		"test/kubepods/memory.min":                             "0",
		"test/kubepods/memory.low":                             "0",
		"test/kubepods/besteffort/cpu.weight":                  "1",
		"test/kubepods/burstable/hugetlb.2MB.max":              "4611686018427387904",
		"test/kubepods/besteffort/hugetlb.2MB.max":             "4611686018427387904",
		"test/kubepods/burstable/pod12ab-34cd/cpu.weight":      "20",
		"test/kubepods/burstable/pod12ab-34cd/cpu.max":         "100000 100000",
		"test/kubepods/burstable/pod12ab-34cd/memory.max":      "1073741824",
		"test/kubepods/burstable/pod12ab-34cd/pids.max":        "50",
		"test/kubepods/burstable/pod12ab-34cd/hugetlb.2MB.max": "0",
	}, withoutReservation(files(t, root))))
}

func TestWrittenMemoryProtectionV2(t *testing.T) {
	m, root := fake(t, true, "cpu", "memory", "pids", "hugetlb")
	m.Reserve()
	require.NoError(t, m.EnsureNode(t.Context()))
	require.NoError(t, m.SetDemand(t.Context(), cgroup.Demand{BurstableCPU: 3000, BurstableMemory: 3 << 30, GuaranteedMemory: 1 << 30}))
	require.NoError(t, m.Ensure(t.Context(), pod("500m", "1", "1Gi", "1Gi")))
	got := files(t, root)
	for name, want := range map[string]string{
		"test/kubepods/memory.min":                        "4294967296",
		"test/kubepods/memory.low":                        "3221225472",
		"test/kubepods/burstable/memory.low":              "3221225472",
		"test/kubepods/burstable/cpu.weight":              "118", // 1 + 3070*9999/262142
		"test/kubepods/burstable/pod12ab-34cd/memory.low": "1073741824",
	} {
		require.Equal(t, want, got[name], name)
	}
	require.NotContains(t, got, "test/kubepods/burstable/memory.min")
	require.NotContains(t, got, "test/kubepods/burstable/pod12ab-34cd/memory.min")
}

// A resize raises the pod's limits before its containers change, and lowers
// them after.
func TestWrittenValuesOfAResize(t *testing.T) {
	was, is := pod("500m", "1", "1Gi", "2Gi"), pod("1", "2", "1Gi", "1Gi")
	for _, tc := range []struct {
		v2             bool
		before, raised map[string]string
		after          map[string]string
	}{
		{
			true,
			map[string]string{"cpu.weight": "20", "cpu.max": "100000 100000", "memory.max": "2147483648"},
			map[string]string{"cpu.weight": "39", "cpu.max": "200000 100000", "memory.max": "2147483648"},
			map[string]string{"cpu.weight": "39", "cpu.max": "200000 100000", "memory.max": "1073741824"},
		},
		{
			false,
			map[string]string{"cpu.shares": "512", "cpu.cfs_quota_us": "100000", "memory.limit_in_bytes": "2147483648"},
			map[string]string{"cpu.shares": "1024", "cpu.cfs_quota_us": "200000", "memory.limit_in_bytes": "2147483648"},
			map[string]string{"cpu.shares": "1024", "cpu.cfs_quota_us": "200000", "memory.limit_in_bytes": "1073741824"},
		},
	} {
		m, root := fake(t, tc.v2, "cpu", "memory", "pids", "hugetlb")
		require.NoError(t, m.Ensure(t.Context(), was))
		written := func(when string, want map[string]string) {
			got := map[string]string{}
			for path, text := range files(t, root) {
				got[filepath.Base(path)] = text
			}
			for name, text := range want {
				require.Equal(t, text, got[name], "%s: %s", when, name)
			}
		}
		written("before", tc.before)
		require.NoError(t, m.Raise(t.Context(), was, is))
		written("raised", tc.raised)
		require.NoError(t, m.Ensure(t.Context(), is))
		written("after", tc.after)
	}
}

func TestMemoryOfAPodsCgroup(t *testing.T) {
	m, root := fake(t, true, "cpu", "memory", "pids", "hugetlb")
	p := pod("1", "", "1Gi", "2Gi")
	limit, used, err := m.Memory(t.Context(), p)
	require.NoError(t, err)
	require.EqualValues(t, 2<<30, limit)
	require.Zero(t, used, "there is no cgroup")
	require.NoError(t, m.Ensure(t.Context(), p))
	file := filepath.Join(root, "test/kubepods/burstable/pod12ab-34cd/memory.current")
	require.NoError(t, os.WriteFile(file, []byte("4096\n"), 0o600))
	_, used, err = m.Memory(t.Context(), p)
	require.NoError(t, err)
	require.EqualValues(t, 4096, used)
}

// withoutReservation drops the second file that newer kernels have for huge
// pages, which the library writes as well.
func withoutReservation(in map[string]string) map[string]string {
	for name := range in {
		if strings.Contains(name, ".rsvd.") {
			delete(in, name)
		}
	}
	return in
}

func TestAMissingControllerMattersOnlyToALimit(t *testing.T) {
	m, root := fake(t, false, "cpu", "pids")
	require.Len(t, m.Degraded(), 2)
	require.NoError(t, m.EnsureNode(t.Context()), "limits of the node are degraded")
	require.NoError(t, m.Ensure(t.Context(), pod("1", "", "1Gi", "")))
	require.ErrorContains(t, m.Ensure(t.Context(), pod("1", "", "1Gi", "1Gi")), "lacks the cgroup controllers memory")
	require.NotContains(t, files(t, root), "memory")
}

// Runtimes put containers into the v2 hierarchy that a machine may have beside v1.
func TestRemovalCoversTheHybridHierarchy(t *testing.T) {
	m, root := fake(t, false, "", "cpu")
	leftover := filepath.Join(root, "test/kubepods/burstable/podx-1/container")
	require.NoError(t, os.MkdirAll(leftover, 0o755))
	everyDir(t, root, func(d string) { procs(t, d, "") })
	procs(t, leftover, "5\n")
	var busy *cgroup.BusyError
	require.ErrorAs(t, m.RemovePod(t.Context(), "x-1"), &busy)
	require.Equal(t, []int{5}, busy.PIDs)
}

func TestRemovalFindsThePodUnderAnyLevel(t *testing.T) {
	m, root := fake(t, false, "cpu", "memory", "pids")
	require.NoError(t, m.EnsureNode(t.Context()))
	dir := filepath.Join(root, "memory/test/kubepods/besteffort/podx-1")
	leftover := filepath.Join(dir, "container")
	require.NoError(t, os.MkdirAll(leftover, 0o755))
	other := filepath.Join(root, "cpu/test/kubepods/pody")
	require.NoError(t, os.Mkdir(other, 0o755))
	everyDir(t, root, func(d string) { procs(t, d, "") })
	procs(t, leftover, "7\n3\n")

	uids, err := m.PodUIDs()
	require.NoError(t, err)
	require.Equal(t, []types.UID{"x-1", "y"}, uids)

	var busy *cgroup.BusyError
	require.ErrorAs(t, m.RemovePod(t.Context(), "x-1"), &busy)
	require.Equal(t, []int{3, 7}, busy.PIDs)
	require.ErrorContains(t, busy, "/test/kubepods/besteffort/podx-1")
	require.ErrorContains(t, m.RemoveNode(t.Context()), "still holds")

	require.NoError(t, os.Remove(filepath.Join(dir, "cgroup.procs")))
	require.ErrorContains(t, m.RemovePod(t.Context(), "x-1"), "cgroup.procs", "what cannot be read is not removed")
	require.DirExists(t, dir)
	require.NoError(t, m.RemovePod(t.Context(), "unknown"))
	require.DirExists(t, other)
}

func everyDir(t *testing.T, root string, visit func(string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			visit(path)
		}
		return err
	}))
}

func procs(t *testing.T, dir, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(text), 0o600))
}
