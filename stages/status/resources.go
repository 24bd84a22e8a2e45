package status

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/flowlet/flowlet/internal/pod"
)

// What the kernel makes of less: an amount that is not above it is shown as
// the spec has it (kubelet v1.37.2).
const (
	leastRequest = 2  // thousandths of a CPU
	leastLimit   = 10 // thousandths of a CPU
)

// given fills what a container was given and what of it the runtime shows.
func (c *computation) given(st *v1.ContainerStatus, spec *v1.Container, now *pod.Container) {
	shown := spec.Resources.DeepCopy()
	st.AllocatedResources = spec.Resources.Requests
	t := now.Told
	if t != nil && now.Live() {
		actual(shown, t)
	}
	st.Resources = shown
	if t == nil {
		return
	}
	if t.User != nil {
		st.User = &v1.ContainerUser{Linux: t.User}
	}
	if c.StopSignals && t.StopSignal != "" {
		st.StopSignal = &t.StopSignal
	}
}

// actual puts what the runtime shows in place of what was asked for.
func actual(r *v1.ResourceRequirements, t *pod.Told) {
	if r.Limits != nil {
		if t.CPULimit > 0 && (t.CPULimit > leastLimit || r.Limits.Cpu().MilliValue() > leastLimit) {
			r.Limits[v1.ResourceCPU] = milli(t.CPULimit, r.Limits.Cpu())
		}
		if t.MemoryLimit > 0 {
			r.Limits[v1.ResourceMemory] = bytes(t.MemoryLimit, r.Limits.Memory())
		}
	}
	if r.Requests != nil && t.CPURequest > 0 && (t.CPURequest > leastRequest || r.Requests.Cpu().MilliValue() > leastRequest) {
		r.Requests[v1.ResourceCPU] = milli(t.CPURequest, r.Requests.Cpu())
	}
}

// milli and bytes keep the spelling of an amount that is what it was.
func milli(n int64, was *resource.Quantity) resource.Quantity {
	if was.MilliValue() == n {
		return *was
	}
	return *resource.NewMilliQuantity(n, resource.DecimalSI)
}

func bytes(n int64, was *resource.Quantity) resource.Quantity {
	if was.Value() == n {
		return *was
	}
	return *resource.NewQuantity(n, resource.BinarySI)
}

// mounts lists a container's volumes. Only of those that are read-only it is
// told whether what is mounted below them is so, too.
func (c *computation) mounts(spec *v1.Container) []v1.VolumeMountStatus {
	var out []v1.VolumeMountStatus
	for i := range spec.VolumeMounts {
		m := &spec.VolumeMounts[i]
		st := v1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			mode := v1.RecursiveReadOnlyDisabled
			if r := m.RecursiveReadOnly; r != nil && c.RecursiveReadOnly && *r != v1.RecursiveReadOnlyDisabled {
				mode = v1.RecursiveReadOnlyEnabled
			}
			st.RecursiveReadOnly = &mode
		}
		out = append(out, st)
	}
	return out
}

// podResources fills what the pod as a whole was given.
func (c *computation) podResources() {
	if !asks(c.p) {
		c.out.Resources = &v1.ResourceRequirements{}
		return
	}
	o := resourcehelper.PodResourcesOptions{}
	requests := resourcehelper.PodRequests(c.p, o)
	c.out.AllocatedResources = requests
	c.out.Resources = &v1.ResourceRequirements{Requests: requests, Limits: resourcehelper.PodLimits(c.p, o)}
}

// asks reports whether a pod asks for any resource: most of the steps of a
// large node are about pods that do not.
func asks(p *v1.Pod) bool {
	some := func(r *v1.ResourceRequirements) bool { return r != nil && len(r.Requests)+len(r.Limits) > 0 }
	if some(p.Spec.Resources) || len(p.Spec.Overhead) > 0 {
		return true
	}
	for _, list := range [2][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if some(&list[i].Resources) {
				return true
			}
		}
	}
	return false
}
