package cgroup_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/cgroups"
	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/stages/cgroup"
)

// With the systemd driver the library turns each of these fields into a
// property of the slice: CpuWeight into CPUWeight, CpuQuota with CpuPeriod into
// CPUQuotaPerSecUSec and CPUQuotaPeriodUSec, Memory into MemoryMax, PidsLimit
// into TasksMax, and of Unified memory.min, .low and .high into MemoryMin,
// MemoryLow and MemoryHigh. On v1 CpuShares becomes CPUShares and Memory
// MemoryLimit. Huge pages have no property: the library writes their files.
func TestWhatSystemdIsAskedFor(t *testing.T) {
	pids := int64(50)
	protected := cgroup.Limits{CFSQuota: true, PodPids: 50, PageSizes: []string{"2MB"}, Memory: cgroup.MemoryQoS{On: true, Tiered: true}}
	v := cgroup.PodValues(pod("500m", "1", "1Gi", "2Gi"), protected)
	huge := []*cgroups.HugepageLimit{{Pagesize: "2MB", Limit: 0}}
	for name, tc := range map[string]struct {
		v2   bool
		want cgroups.Resources
	}{
		"v2": {true, cgroups.Resources{
			CpuWeight: 20, CpuQuota: 100000, CpuPeriod: 100000, Memory: 2 << 30, PidsLimit: &pids, HugetlbLimit: huge,
			Unified: map[string]string{"memory.low": "1073741824"},
		}},
		"v1": {false, cgroups.Resources{
			CpuShares: 512, CpuQuota: 100000, CpuPeriod: 100000, Memory: 2 << 30, PidsLimit: &pids, HugetlbLimit: huge,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.SkipDevices, tc.want.SkipFreezeOnSet = true, true
			slice, parent, got := cgroup.SystemdUnit(t, tc.v2, v, "kubepods", "burstable", "pod12ab-34cd")
			require.Equal(t, "kubepods-burstable-pod12ab_34cd.slice", slice)
			require.Equal(t, "kubepods-burstable.slice", parent)
			require.Empty(t, cmp.Diff(&tc.want, got))
		})
	}
}
