package container

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubectl/pkg/util/qos"

	"github.com/flowlet/flowlet/internal/pod"
)

// unified is what the runtime writes to files of cgroup v2 besides the limits.
func (c *Containers) unified(p *v1.Pod, ct *v1.Container) map[string]string {
	out := map[string]string{}
	if c.Settings.OOMGroup {
		out["memory.oom.group"] = "1"
	}
	if c.Settings.SwapLimit {
		out["memory.swap.max"] = strconv.FormatInt(c.swap(p, ct), 10)
	}
	if !c.Settings.MemoryQoS.On {
		out["memory.high"] = "max" // it may have been otherwise before
		return out
	}
	request := ct.Resources.Requests.Memory().Value()
	switch {
	case request == 0 || !c.Settings.MemoryQoS.Reserved:
		out["memory.min"], out["memory.low"] = "0", "0"
	case qos.GetPodQOS(p) == v1.PodQOSGuaranteed:
		out["memory.min"] = strconv.FormatInt(request, 10)
	default:
		out["memory.low"] = strconv.FormatInt(request, 10)
	}
	if high := c.memoryHigh(p, ct); high > 0 {
		out["memory.high"] = strconv.FormatInt(high, 10)
	}
	return out
}

// memoryHigh throttles a container on its way to its limit or, where it has
// none, to what the node has. Where only the pod has a limit its cgroup throttles.
func (c *Containers) memoryHigh(p *v1.Pod, ct *v1.Container) int64 {
	if c.Settings.MemoryQoS.High == nil {
		return 0
	}
	request, limit := ct.Resources.Requests.Memory().Value(), ct.Resources.Limits.Memory().Value()
	if limit == 0 {
		if resourcehelper.IsPodLevelResourcesSet(p) && !p.Spec.Resources.Limits.Memory().IsZero() {
			return 0
		}
		limit = c.Settings.Allocatable.Memory().Value()
	}
	return c.Settings.MemoryQoS.High(request, limit)
}

// Swaps reports whether a container may use swap.
func (c *Containers) Swaps(p *v1.Pod, ct *v1.Container) bool {
	return c.Settings.CgroupV2 && c.Settings.SwapLimit && c.swap(p, ct) > 0
}

// swap is how much swap a container may use: none, or with LimitedSwap the
// share of the node's swap that its request is of the node's memory. Critical
// pods and containers whose memory is fixed use none.
func (c *Containers) swap(p *v1.Pod, ct *v1.Container) int64 {
	request, limit := ct.Resources.Requests.Memory(), ct.Resources.Limits.Memory()
	switch {
	case !c.Settings.LimitedSwap, pod.Critical(p), qos.GetPodQOS(p) != v1.PodQOSBurstable, request.Cmp(*limit) == 0:
		return 0
	case request.Value() > c.Settings.Memory || c.Settings.Memory <= 0:
		return 0
	}
	return int64(float64(request.Value()) / float64(c.Settings.Memory) * float64(c.Settings.Swap))
}
