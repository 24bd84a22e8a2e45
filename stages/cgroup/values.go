package cgroup

import (
	"cmp"
	"maps"
	"math"
	"os"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubectl/pkg/util/qos"

	"github.com/flowlet/flowlet/internal/crifact"
)

// The kernel's bounds.
const (
	noQuota     = -1      // lifts a quota
	noPageLimit = 1 << 62 // of huge pages
)

// Values are what is written to a cgroup. Zero fields are left as they are.
type Values struct {
	CPUShares uint64
	CPUQuota  int64  // microseconds per period; -1: none
	CPUPeriod uint64 // microseconds
	Memory    int64  // bytes
	Pids      int64
	// HugePages holds the limit in bytes by the kernel's name of the page size
	// ("2MB").
	HugePages map[string]uint64
	// Unified holds what else is written on v2, by file.
	Unified map[string]string
}

// Files of cgroup v2 by which memory is protected and throttled.
const (
	memoryMin  = "memory.min"
	memoryLow  = "memory.low"
	memoryHigh = "memory.high"
)

// Limits are the settings of the node that go into a pod's values.
type Limits struct {
	CFSQuota  bool          // cpuCFSQuota
	CFSPeriod time.Duration // cpuCFSQuotaPeriod; 0 means 100 ms
	PodPids   int64         // podPidsLimit; 0 or less: no limit
	PageSizes []string      // the kernel's names of all huge page sizes of the machine
	Memory    MemoryQoS
}

// MemoryQoS says how the memory that pods request is kept for them. It has an
// effect on cgroup v2 only.
type MemoryQoS struct {
	On        bool     // the gate MemoryQoS, on cgroup v2
	Tiered    bool     // memoryReservationPolicy TieredReservation
	Throttled *float64 // memoryThrottlingFactor; nil: nothing is throttled
}

// Reserves reports whether requests are protected.
func (m MemoryQoS) Reserves() bool { return m.On && m.Tiered }

// High returns from how many bytes on memory is reclaimed from what requests
// and may have that many: in between, by the factor, in whole pages. 0 means
// that nothing is throttled.
func (m MemoryQoS) High(request, limit int64) int64 {
	if !m.On || m.Throttled == nil || limit == 0 || request == limit {
		return 0
	}
	page := int64(os.Getpagesize())
	high := int64(math.Floor(float64(request)+(float64(limit)-float64(request))**m.Throttled)/float64(page)) * page
	if high <= request {
		return 0
	}
	return high
}

func (l Limits) period() time.Duration { return cmp.Or(l.CFSPeriod, crifact.DefaultPeriod) }

func shares(milliCPU int64) uint64 { return uint64(crifact.Shares(milliCPU)) }

// Weight converts cpu.shares to cpu.weight as the kubelet does for the cgroups
// that it makes itself.
func Weight(shares uint64) uint64 {
	if shares == 0 {
		return 0
	}
	return 1 + (shares-crifact.MinShares)*9999/(crifact.MaxShares-crifact.MinShares)
}

// PodValues computes the values of a pod's cgroup. A limit counts for the pod
// only when all its containers, or the pod itself, have one.
func PodValues(pod *corev1.Pod, l Limits) Values {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	limits := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})

	v := Values{CPUShares: crifact.MinShares, Unified: memoryOf(pod, requests, limits, l.Memory), HugePages: hugePages(requests, l.PageSizes)}
	if l.PodPids > 0 {
		v.Pids = l.PodPids
	}
	class := qos.GetPodQOS(pod)
	if class == corev1.PodQOSBestEffort {
		return v
	}
	v.CPUShares = shares(requests.Cpu().MilliValue())
	guaranteed := class == corev1.PodQOSGuaranteed
	if guaranteed || allLimited(pod, corev1.ResourceCPU) {
		v.CPUPeriod = uint64(l.period().Microseconds())
		v.CPUQuota = crifact.Quota(limits.Cpu().MilliValue(), l.period())
		if !l.CFSQuota {
			v.CPUQuota = noQuota
		}
	}
	if guaranteed || allLimited(pod, corev1.ResourceMemory) {
		v.Memory = limits.Memory().Value()
	}
	return v
}

// memoryOf is how a pod's memory is protected and throttled.
func memoryOf(pod *corev1.Pod, requests, limits corev1.ResourceList, m MemoryQoS) map[string]string {
	out := map[string]string{}
	request := requests.Memory().Value()
	if m.Reserves() && request > 0 {
		file := memoryLow
		if qos.GetPodQOS(pod) == corev1.PodQOSGuaranteed {
			file = memoryMin
		}
		out[file] = strconv.FormatInt(request, 10)
	}
	if resourcehelper.IsPodLevelResourcesSet(pod) && allLimited(pod, corev1.ResourceMemory) {
		if high := m.High(request, limits.Memory().Value()); high > 0 {
			out[memoryHigh] = strconv.FormatInt(high, 10)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Demand is what the pods of the QoS levels request together.
type Demand struct {
	BurstableCPU     int64 // in thousandths
	BurstableMemory  int64 // bytes
	GuaranteedMemory int64
}

// Add returns d with what a pod requests.
func (d Demand) Add(pod *corev1.Pod) Demand {
	class := qos.GetPodQOS(pod)
	if class == corev1.PodQOSBestEffort {
		return d
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	if class == corev1.PodQOSGuaranteed {
		d.GuaranteedMemory += requests.Memory().Value()
		return d
	}
	d.BurstableCPU += requests.Cpu().MilliValue()
	d.BurstableMemory += requests.Memory().Value()
	return d
}

// levels are the values of the cgroup above all pods and of the Burstable
// level that follow what pods request.
func (d Demand) levels(m MemoryQoS) (base, burstable Values) {
	burstable.CPUShares = shares(d.BurstableCPU)
	if !m.Reserves() {
		return base, burstable
	}
	bytes := func(n int64) string { return strconv.FormatInt(n, 10) }
	base.Unified = map[string]string{memoryMin: bytes(d.GuaranteedMemory + d.BurstableMemory), memoryLow: bytes(d.BurstableMemory)}
	burstable.Unified = map[string]string{memoryLow: bytes(d.BurstableMemory)}
	return base, burstable
}

// NodeValues computes the values of the cgroup above all pods from what pods
// may have together. What the list lacks is not limited; the number of
// processes is under "pid".
func NodeValues(allocatable corev1.ResourceList) Values {
	pids := allocatable["pid"]
	v := Values{Memory: allocatable.Memory().Value(), Pids: pids.Value()}
	if cpu, ok := allocatable[corev1.ResourceCPU]; ok {
		v.CPUShares = shares(cpu.MilliValue())
	}
	return v
}

func allLimited(pod *corev1.Pod, name corev1.ResourceName) bool {
	has := func(list corev1.ResourceList) bool {
		q, ok := list[name]
		return ok && !q.IsZero()
	}
	if r := pod.Spec.Resources; r != nil && has(r.Limits) {
		return true
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if !has(list[i].Resources.Limits) {
				return false
			}
		}
	}
	return true
}

// hugePages limits every page size: to what is requested, or to nothing.
func hugePages(requests corev1.ResourceList, sizes []string) map[string]uint64 {
	out := map[string]uint64{}
	for _, size := range sizes {
		out[size] = 0
	}
	maps.Copy(out, crifact.HugePages(requests))
	return out
}

// unlimitedPages is for the levels above pods.
func unlimitedPages(sizes []string) map[string]uint64 {
	out := map[string]uint64{}
	for _, size := range sizes {
		out[size] = noPageLimit
	}
	return out
}
