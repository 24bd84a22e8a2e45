package crifact

import (
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The kernel's limits and the kubelet's conversion of CPU amounts (v1.37.2).
const (
	MinShares     = 2                      // what the kernel makes of 0
	MaxShares     = 262144                 // the most that cpu.shares takes
	DefaultPeriod = 100 * time.Millisecond // of the CFS quota

	sharesPerCPU = 1024
	milliCPU     = 1000
	minQuota     = 1000 // microseconds; the kernel refuses less
)

// Shares returns the CPU shares for an amount in thousandths of a CPU.
func Shares(milli int64) int64 {
	if milli <= 0 {
		return MinShares
	}
	return min(max(milli*sharesPerCPU/milliCPU, MinShares), MaxShares)
}

// MilliOfShares returns the amount in thousandths of a CPU that CPU shares
// stand for, rounded up.
func MilliOfShares(shares int64) int64 {
	if shares < MinShares {
		return 0
	}
	return (shares*milliCPU + sharesPerCPU - 1) / sharesPerCPU
}

// Quota returns the CFS quota in microseconds per period for a limit in
// thousandths of a CPU; 0 where there is no limit.
func Quota(milli int64, period time.Duration) int64 {
	if milli <= 0 {
		return 0
	}
	return max(milli*period.Microseconds()/milliCPU, minQuota)
}

// LinuxResources returns the CPU and memory part of a request: shares from the
// CPU request, else from the CPU limit; the memory limit; and the quota from
// the CPU limit. A period of 0 means that CPU limits are not enforced.
func LinuxResources(requests, limits v1.ResourceList, period time.Duration) *runtimeapi.LinuxContainerResources {
	cpu := limits.Cpu().MilliValue()
	r := &runtimeapi.LinuxContainerResources{
		CpuShares:          Shares(cpu),
		MemoryLimitInBytes: limits.Memory().Value(),
	}
	if q, ok := requests[v1.ResourceCPU]; ok {
		r.CpuShares = Shares(q.MilliValue())
	}
	if period > 0 {
		r.CpuPeriod = period.Microseconds()
		r.CpuQuota = Quota(cpu, period)
	}
	return r
}
