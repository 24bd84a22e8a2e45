package container

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubectl/pkg/util/qos"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

// oom_score_adj by QoS class (kubelet v1.37.2): what the kernel kills first.
const (
	oomGuaranteed = -997
	oomBestEffort = 1000
	oomLeast      = 3   // of Burstable: never as safe as Guaranteed
	oomMost       = 999 // of Burstable: never as soon as BestEffort

	nodeCritical = "system-node-critical"
)

func (c *Containers) resources(p *v1.Pod, ct *v1.Container) *runtimeapi.LinuxContainerResources {
	limits := podLimits(p, ct)
	r := crifact.LinuxResources(ct.Resources.Requests, limits, c.Settings.Period)
	r.OomScoreAdj = oomScoreAdj(p, ct, c.Settings.Memory)
	r.HugepageLimits = hugePages(p, ct, c.Settings.HugePageSizes)
	switch {
	case c.Settings.CgroupV2:
		r.Unified = c.unified(p, ct)
	case c.Settings.SwapLimit:
		r.MemorySwapLimitInBytes = r.MemoryLimitInBytes // memory and swap together
	}
	return r
}

// podLimits returns a container's limits, of CPU and memory those of its pod
// where it has none.
func podLimits(p *v1.Pod, ct *v1.Container) v1.ResourceList {
	if p.Spec.Resources == nil {
		return ct.Resources.Limits
	}
	out := maps.Clone(ct.Resources.Limits)
	if out == nil {
		out = v1.ResourceList{}
	}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		have := out[name]
		if q, ok := p.Spec.Resources.Limits[name]; ok && have.IsZero() {
			out[name] = q
		}
	}
	return out
}

// hugePages limits every page size of the node: to what the container, or else
// its pod, asks, or to none.
func hugePages(p *v1.Pod, ct *v1.Container, sizes []string) []*runtimeapi.HugepageLimit {
	asked := map[string]uint64{}
	if p.Spec.Resources != nil {
		maps.Copy(asked, crifact.HugePages(p.Spec.Resources.Limits))
	}
	maps.Copy(asked, crifact.HugePages(ct.Resources.Limits))
	var out []*runtimeapi.HugepageLimit
	for _, size := range sizes {
		out = append(out, &runtimeapi.HugepageLimit{PageSize: size, Limit: asked[size]})
	}
	return out
}

// oomScoreAdj says how soon the kernel kills a container of a node that is out
// of memory. The more of its node's memory a Burstable container requests, the
// later; a sidecar is not killed before the containers that it serves.
func oomScoreAdj(p *v1.Pod, ct *v1.Container, nodeMemory int64) int64 {
	if p.Spec.PriorityClassName == nodeCritical {
		return oomGuaranteed
	}
	switch qos.GetPodQOS(p) {
	case v1.PodQOSGuaranteed:
		return oomGuaranteed
	case v1.PodQOSBestEffort:
		return oomBestEffort
	}
	requested := ct.Resources.Requests.Memory().Value()
	if sidecar(p, ct) {
		requested = max(requested, leastRequest(p))
	}
	requested += unassigned(p)
	return min(max(oomBestEffort-oomBestEffort*requested/max(nodeMemory, 1), oomLeast), oomMost)
}

func sidecar(p *v1.Pod, ct *v1.Container) bool {
	for i := range p.Spec.InitContainers {
		if p.Spec.InitContainers[i].Name == ct.Name {
			return pod.Sidecar(ct)
		}
	}
	return false
}

// leastRequest is the smallest memory request among the regular containers.
func leastRequest(p *v1.Pod) int64 {
	least := int64(-1)
	for i := range p.Spec.Containers {
		r := p.Spec.Containers[i].Resources.Requests.Memory().Value()
		if least < 0 || r < least {
			least = r
		}
	}
	return max(least, 0)
}

// unassigned is each container's share of the memory that the pod requests
// beyond its containers.
func unassigned(p *v1.Pod) int64 {
	if !resourcehelper.IsPodLevelRequestsSet(p) {
		return 0
	}
	o := resourcehelper.PodResourcesOptions{SkipPodLevelResources: true, ExcludeOverhead: true}
	own := resourcehelper.PodRequests(p, o)
	rest := p.Spec.Resources.Requests.Memory().Value() - own.Memory().Value()
	n := len(p.Spec.Containers)
	for i := range p.Spec.InitContainers {
		if pod.Sidecar(&p.Spec.InitContainers[i]) {
			n++
		}
	}
	return max(rest, 0) / int64(max(n, 1))
}
