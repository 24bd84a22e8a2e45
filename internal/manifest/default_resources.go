package manifest

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// defaultPodResources completes pod-level resources where the user gave some.
// The order matters: huge page limits, then requests (from containers, else
// from limits), then limits, which must not be below the requests.
func defaultPodResources(pod *v1.Pod) {
	r := pod.Spec.Resources
	if r == nil || (len(r.Requests) == 0 && len(r.Limits) == 0) {
		return
	}
	bare := &v1.Pod{Spec: v1.PodSpec{
		Containers:     pod.Spec.Containers,
		InitContainers: pod.Spec.InitContainers,
	}}
	requested := resourcehelper.AggregateContainerRequests(bare, resourcehelper.PodResourcesOptions{})
	limited := resourcehelper.AggregateContainerLimits(bare, resourcehelper.PodResourcesOptions{})

	limitHugePages(r, limited)
	requestForPod(r, requested)
	limitPod(r, limited, &pod.Spec)
}

// limitHugePages: huge pages cannot be overcommitted, so the pod's limit is
// the sum of its containers' unless the pod says something about them.
func limitHugePages(r *v1.ResourceRequirements, limited v1.ResourceList) {
	for name, sum := range limited {
		_, requestedByPod := r.Requests[name]
		if isHugePages(name) && !requestedByPod {
			setQuantity(&r.Limits, name, sum)
		}
	}
}

func requestForPod(r *v1.ResourceRequirements, requested v1.ResourceList) {
	for name, sum := range requested {
		if resourcehelper.IsSupportedPodLevelResource(name) && mayOvercommit(name) {
			setQuantity(&r.Requests, name, sum)
		}
	}
	for name, limit := range r.Limits {
		if resourcehelper.IsSupportedPodLevelResource(name) {
			setQuantity(&r.Requests, name, limit)
		}
	}
}

// limitPod limits the pod where all of its containers are limited.
func limitPod(r *v1.ResourceRequirements, limited v1.ResourceList, spec *v1.PodSpec) {
	for name, request := range r.Requests {
		sum, ok := limited[name]
		if !ok || !resourcehelper.IsSupportedPodLevelResource(name) || !limitedEverywhere(spec, name) {
			continue
		}
		if request.Cmp(sum) > 0 {
			sum = request
		}
		setQuantity(&r.Limits, name, sum)
	}
}

// limitedEverywhere is not true with ephemeral containers that are valid: they
// have no limits.
func limitedEverywhere(spec *v1.PodSpec, name v1.ResourceName) bool {
	for i := range spec.EphemeralContainers {
		if _, ok := spec.EphemeralContainers[i].Resources.Limits[name]; !ok {
			return false
		}
	}
	for _, c := range append(pointers(spec.InitContainers), pointers(spec.Containers)...) {
		if _, ok := c.Resources.Limits[name]; !ok {
			return false
		}
	}
	return true
}

// setQuantity adds a quantity to the list unless the list has one already.
func setQuantity(list *v1.ResourceList, name v1.ResourceName, quantity resource.Quantity) {
	if _, ok := (*list)[name]; ok {
		return
	}
	if *list == nil {
		*list = v1.ResourceList{}
	}
	(*list)[name] = quantity.DeepCopy()
}
