package crifact_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/internal/crifact"
)

func amounts(cpu, memory string) v1.ResourceList {
	l := v1.ResourceList{}
	if cpu != "" {
		l[v1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		l[v1.ResourceMemory] = resource.MustParse(memory)
	}
	return l
}

func TestLinuxResources(t *testing.T) {
	for name, tc := range map[string]struct {
		requests, limits v1.ResourceList
		period           time.Duration
		want             *runtimeapi.LinuxContainerResources
	}{
		"nothing asked": {
			period: crifact.DefaultPeriod,
			want:   &runtimeapi.LinuxContainerResources{CpuShares: 2, CpuPeriod: 100000},
		},
		"request and limit": {
			requests: amounts("250m", "64Mi"), limits: amounts("1500m", "128Mi"), period: crifact.DefaultPeriod,
			want: &runtimeapi.LinuxContainerResources{CpuShares: 256, CpuPeriod: 100000, CpuQuota: 150000, MemoryLimitInBytes: 128 << 20},
		},
		"shares from the limit": {
			limits: amounts("2", ""), period: crifact.DefaultPeriod,
			want: &runtimeapi.LinuxContainerResources{CpuShares: 2048, CpuPeriod: 100000, CpuQuota: 200000},
		},
		"a request of 0 is not the limit": {
			requests: amounts("0", ""), limits: amounts("2", ""), period: crifact.DefaultPeriod,
			want: &runtimeapi.LinuxContainerResources{CpuShares: 2, CpuPeriod: 100000, CpuQuota: 200000},
		},
		"a limit below what the kernel takes": {
			limits: amounts("1m", ""), period: 10 * time.Millisecond,
			want: &runtimeapi.LinuxContainerResources{CpuShares: 2, CpuPeriod: 10000, CpuQuota: 1000},
		},
		"limits not enforced": {
			limits: amounts("1", ""),
			want:   &runtimeapi.LinuxContainerResources{CpuShares: 1024},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, crifact.LinuxResources(tc.requests, tc.limits, tc.period))
		})
	}
}

func TestSharesStayInTheKernelsRange(t *testing.T) {
	for milli, want := range map[int64]int64{0: 2, 1: 2, 100: 102, 1000: 1024, 1 << 40: 262144} {
		require.Equal(t, want, crifact.Shares(milli))
	}
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Int64Range(-10, 1<<40).Draw(t, "a")
		b := rapid.Int64Range(a, 1<<40).Draw(t, "b")
		require.GreaterOrEqual(t, crifact.Shares(a), int64(2))
		require.LessOrEqual(t, crifact.Shares(b), int64(262144))
		require.LessOrEqual(t, crifact.Shares(a), crifact.Shares(b), "more CPU never means fewer shares")
	})
}

func TestHugePagesGoByTheKernelsNameOfTheirSize(t *testing.T) {
	require.Equal(t, map[string]uint64{"2MB": 6 << 20, "1GB": 2 << 30}, crifact.HugePages(v1.ResourceList{
		"hugepages-2Mi": resource.MustParse("4Mi"), "hugepages-2048Ki": resource.MustParse("2Mi"), "hugepages-1Gi": resource.MustParse("2Gi"),
		"hugepages-": resource.MustParse("1"), "hugepages-odd": resource.MustParse("1"), "memory": resource.MustParse("1Gi"),
	}))
}

func TestNamespaces(t *testing.T) {
	const pod, node, own = runtimeapi.NamespaceMode_POD, runtimeapi.NamespaceMode_NODE, runtimeapi.NamespaceMode_CONTAINER
	for name, tc := range map[string]struct {
		spec              v1.PodSpec
		network, pid, ipc runtimeapi.NamespaceMode
	}{
		"own":           {v1.PodSpec{}, pod, own, pod},
		"host":          {v1.PodSpec{HostNetwork: true, HostPID: true, HostIPC: true}, node, node, node},
		"shared":        {v1.PodSpec{ShareProcessNamespace: ptr.To(true)}, pod, pod, pod},
		"not shared":    {v1.PodSpec{ShareProcessNamespace: ptr.To(false)}, pod, own, pod},
		"host, not pod": {v1.PodSpec{HostPID: true, ShareProcessNamespace: ptr.To(true)}, pod, node, pod},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, &runtimeapi.NamespaceOption{
				Network: tc.network, Pid: tc.pid, Ipc: tc.ipc, UsernsOptions: &runtimeapi.UserNamespace{Mode: node},
			}, crifact.Namespaces(&v1.Pod{Spec: tc.spec}))
		})
	}
}

func TestGroups(t *testing.T) {
	groups, policy := crifact.Groups(nil)
	require.Empty(t, groups)
	require.Equal(t, runtimeapi.SupplementalGroupsPolicy_Merge, policy)

	groups, policy = crifact.Groups(&v1.PodSecurityContext{
		FSGroup: ptr.To[int64](9), SupplementalGroups: []int64{3, 4}, SupplementalGroupsPolicy: ptr.To(v1.SupplementalGroupsPolicyStrict),
	})
	require.Equal(t, []int64{9, 3, 4}, groups)
	require.Equal(t, runtimeapi.SupplementalGroupsPolicy_Strict, policy)
}

func TestOptionalValues(t *testing.T) {
	require.Nil(t, crifact.Int64(nil))
	require.Equal(t, int64(0), crifact.Int64(ptr.To[int64](0)).GetValue())
	require.Nil(t, crifact.SELinux(nil))
	require.Equal(t, &runtimeapi.SELinuxOption{User: "u", Role: "r", Type: "t", Level: "l"},
		crifact.SELinux(&v1.SELinuxOptions{User: "u", Role: "r", Type: "t", Level: "l"}))
}

func TestFieldPath(t *testing.T) {
	p := &v1.Pod{Spec: v1.PodSpec{
		InitContainers: []v1.Container{{Name: "i", Image: "a"}},
		Containers:     []v1.Container{{Name: "c", Image: "b"}, {Name: "d", Image: "a"}},
		EphemeralContainers: []v1.EphemeralContainer{
			{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "e", Image: "z"}},
		},
	}}
	require.Equal(t, "spec.initContainers{i}", crifact.FieldPath(p, "i"))
	require.Equal(t, "spec.containers{d}", crifact.FieldPath(p, "d"))
	require.Equal(t, "spec.ephemeralContainers{e}", crifact.FieldPath(p, "e"))
	require.Empty(t, crifact.FieldPath(p, "x"))
	require.Equal(t, "spec.initContainers{i}", crifact.FieldPathOfImage(p, "a"))
	require.Equal(t, "spec.containers{c}", crifact.FieldPathOfImage(p, "b"))
	require.Empty(t, crifact.FieldPathOfImage(p, "x"))
}
