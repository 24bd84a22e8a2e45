package cgroup_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flowlet/flowlet/stages/cgroup"
)

func TestPodValues(t *testing.T) {
	const gi = 1 << 30
	with := func(p *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod { change(p); return p }
	quota := cgroup.Limits{CFSQuota: true}
	none := map[string]uint64{}
	tests := []struct {
		name   string
		pod    *corev1.Pod
		limits cgroup.Limits
		want   cgroup.Values
	}{
		{"best effort", pod("", "", "", ""), quota, cgroup.Values{CPUShares: 2, HugePages: none}},
		{"guaranteed", pod("500m", "500m", "1Gi", "1Gi"), quota, cgroup.Values{CPUShares: 512, CPUQuota: 50000, CPUPeriod: 100000, Memory: gi, HugePages: none}},
		{"burstable without limits", pod("250m", "", "1Gi", ""), quota, cgroup.Values{CPUShares: 256, HugePages: none}},
		{"limit below 10m has the least quota", pod("1m", "5m", "", ""), quota, cgroup.Values{CPUShares: 2, CPUQuota: 1000, CPUPeriod: 100000, HugePages: none}},
		{"quota off", pod("1", "1", "1Gi", "1Gi"), cgroup.Limits{}, cgroup.Values{CPUShares: 1024, CPUQuota: -1, CPUPeriod: 100000, Memory: gi, HugePages: none}},
		{"other period", pod("1", "2", "", ""), cgroup.Limits{CFSQuota: true, CFSPeriod: 10 * time.Millisecond}, cgroup.Values{CPUShares: 1024, CPUQuota: 20000, CPUPeriod: 10000, HugePages: none}},
		{"pids", pod("", "", "", ""), cgroup.Limits{PodPids: 100}, cgroup.Values{CPUShares: 2, Pids: 100, HugePages: none}},
		{"pids not limited", pod("", "", "", ""), cgroup.Limits{PodPids: -1}, cgroup.Values{CPUShares: 2, HugePages: none}},
		{"one container without limits lifts the pod's", with(pod("1", "1", "1Gi", "1Gi"), func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, container("1", "", "", ""))
		}), quota, cgroup.Values{CPUShares: 2048, HugePages: none}},
		{"an init container without limits too", with(pod("1", "1", "1Gi", "1Gi"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{container("", "1", "", "")}
		}), quota, cgroup.Values{CPUShares: 1024, CPUQuota: 100000, CPUPeriod: 100000, HugePages: none}},
		{"pod-level limit counts alone", with(pod("1", "", "", ""), func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
		}), quota, cgroup.Values{CPUShares: 1024, Memory: gi, HugePages: none}},
		{"overhead is part of it", with(pod("1", "1", "1Gi", "1Gi"), func(p *corev1.Pod) {
			p.Spec.Overhead = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourceCPU: resource.MustParse("1")}
		}), quota, cgroup.Values{CPUShares: 2048, CPUQuota: 200000, CPUPeriod: 100000, Memory: 2 * gi, HugePages: none}},
		{"huge pages: the requested, and 0 for other sizes", with(pod("", "", "", ""), func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests["hugepages-2Mi"] = resource.MustParse("4Mi")
		}), cgroup.Limits{PageSizes: []string{"2MB", "1GB"}}, cgroup.Values{CPUShares: 2, HugePages: map[string]uint64{"2MB": 4 << 20, "1GB": 0}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Empty(t, cmp.Diff(tt.want, cgroup.PodValues(tt.pod, tt.limits)))
		})
	}
}

func TestMemoryQoSOfAPod(t *testing.T) {
	factor := 0.9
	on := cgroup.MemoryQoS{On: true, Tiered: true, Throttled: &factor}
	podLevel := func(p *corev1.Pod, request, limit string) *corev1.Pod {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
		p.Spec.Resources.Requests[corev1.ResourceMemory] = resource.MustParse(request)
		p.Spec.Resources.Limits[corev1.ResourceMemory] = resource.MustParse(limit)
		return p
	}
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		qos  cgroup.MemoryQoS
		want map[string]string
	}{
		"off":                             {pod("1", "1", "1Gi", "1Gi"), cgroup.MemoryQoS{}, nil},
		"no reservation":                  {pod("1", "1", "1Gi", "1Gi"), cgroup.MemoryQoS{On: true}, nil},
		"guaranteed":                      {pod("1", "1", "1Gi", "1Gi"), on, map[string]string{"memory.min": "1073741824"}},
		"burstable":                       {pod("1", "", "1Gi", ""), on, map[string]string{"memory.low": "1073741824"}},
		"best effort":                     {pod("", "", "", ""), on, nil},
		"pod-level limit: throttled, too": {podLevel(pod("", "", "", ""), "1Gi", "2Gi"), on, map[string]string{"memory.low": "1073741824", "memory.high": "2040107008"}},
		"throttled without reservation":   {podLevel(pod("", "", "", ""), "1Gi", "2Gi"), cgroup.MemoryQoS{On: true, Throttled: &factor}, map[string]string{"memory.high": "2040107008"}},
		"containers' limits do not count": {pod("1", "2", "1Gi", "2Gi"), cgroup.MemoryQoS{On: true, Throttled: &factor}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, cgroup.PodValues(tt.pod, cgroup.Limits{Memory: tt.qos}).Unified)
		})
	}
}

func TestDemandOfTheLevels(t *testing.T) {
	var d cgroup.Demand
	for _, p := range []*corev1.Pod{pod("1", "1", "1Gi", "1Gi"), pod("500m", "", "2Gi", ""), pod("250m", "1", "", ""), pod("", "", "", "")} {
		d = d.Add(p)
	}
	require.Equal(t, cgroup.Demand{BurstableCPU: 750, BurstableMemory: 2 << 30, GuaranteedMemory: 1 << 30}, d)
}

func TestWeights(t *testing.T) {
	for shares, want := range map[uint64]uint64{0: 0, 2: 1, 102: 4, 1024: 39, 262144: 10000} {
		require.Equal(t, want, cgroup.Weight(shares), shares)
	}
}

func TestNodeValues(t *testing.T) {
	require.Equal(t, cgroup.Values{}, cgroup.NodeValues(nil))
	require.Equal(t, cgroup.Values{CPUShares: 2048, Memory: 1 << 30, Pids: 100}, cgroup.NodeValues(corev1.ResourceList{
		"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi"), "pid": resource.MustParse("100"),
	}))
}
