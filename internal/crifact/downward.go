package crifact

import (
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubectl/pkg/util/resource"
)

// ResourceField returns a request or limit of a container as its environment
// or a file of its pod shows it. What has no limit shows the pod's, and where
// the pod has none what the node has for pods (kubelet v1.37.2).
func ResourceField(p *v1.Pod, c *v1.Container, ref *v1.ResourceFieldSelector, allocatable v1.ResourceList) (string, error) {
	limited := *c
	if limited.Resources.Limits = maps.Clone(c.Resources.Limits); limited.Resources.Limits == nil {
		limited.Resources.Limits = v1.ResourceList{}
	}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage} {
		have, known := allocatable[name]
		if limit := limited.Resources.Limits[name]; !known || !limit.IsZero() {
			continue
		}
		if q, ok := podLimit(p, name); ok {
			have = q
		}
		limited.Resources.Limits[name] = have
	}
	value, err := resource.ExtractContainerResourceValue(ref, &limited)
	if err != nil {
		return "", fmt.Errorf("resourceFieldRef %s: %w", ref.Resource, err)
	}
	return value, nil
}

func podLimit(p *v1.Pod, name v1.ResourceName) (q apiresource.Quantity, ok bool) {
	if !resourcehelper.IsPodLevelLimitsSet(p) || !resourcehelper.IsSupportedPodLevelResource(name) {
		return q, false
	}
	q = p.Spec.Resources.Limits[name]
	return q, !q.IsZero()
}
