package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	resourcehelper "k8s.io/component-helpers/resource"
)

// isNative is true for the resources that Kubernetes itself defines.
func isNative(name v1.ResourceName) bool {
	return !strings.Contains(string(name), "/") || strings.Contains(string(name), v1.ResourceDefaultNamespacePrefix)
}

// mayOvercommit is true where a limit may be above the request.
func mayOvercommit(name v1.ResourceName) bool { return isNative(name) && !isHugePages(name) }

// isExtended is true for what a device plugin may offer. Its name has to
// stay valid with the prefix that quotas put before it.
func isExtended(name v1.ResourceName) bool {
	return !isNative(name) && !strings.HasPrefix(string(name), v1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(v1.DefaultResourceRequestsPrefix+string(name))) == 0
}

// containerResourceName says what is wrong with a resource of a container.
func containerResourceName(name v1.ResourceName) []string {
	if msgs := validation.IsQualifiedName(string(name)); len(msgs) > 0 {
		return msgs
	}
	standard := name == v1.ResourceCPU || name == v1.ResourceMemory || name == v1.ResourceEphemeralStorage || isHugePages(name)
	switch {
	case !strings.Contains(string(name), "/") && !standard:
		return []string{"must be a standard resource for containers"}
	case !isNative(name) && !isExtended(name):
		return []string{"doesn't follow extended resource name standard"}
	}
	return nil
}

// podResourceName says what is wrong with a resource of the whole pod.
func podResourceName(name v1.ResourceName) []string {
	if msgs := validation.IsQualifiedName(string(name)); len(msgs) > 0 {
		return msgs
	}
	if !resourcehelper.IsSupportedPodLevelResource(name) {
		return []string{"may not be set for a pod: only cpu, memory and hugepages-*"}
	}
	return nil
}

func sortedNames(list v1.ResourceList) []v1.ResourceName { return slices.Sorted(maps.Keys(list)) }

func (v *validator) resources(r *v1.ResourceRequirements, at *field.Path, nameProblems func(v1.ResourceName) []string) {
	for child, list := range map[string]v1.ResourceList{"limits": r.Limits, "requests": r.Requests} {
		for _, name := range sortedNames(list) {
			at := at.Child(child).Key(string(name))
			v.invalid(at, name, nameProblems(name)...)
			v.quantity(name, list[name], at)
		}
	}
	for _, name := range sortedNames(r.Requests) {
		v.requestAgainstLimit(r, name, at)
	}
	v.forbid(hugePagesOnly(r), at, "HugePages require cpu or memory")
	claims := map[string]bool{}
	for i, claim := range r.Claims {
		at := at.Child("claims").Index(i)
		v.require(claim.Name != "", at, "")
		v.unique(at, claim.Name+"/"+claim.Request, claims)
		if claim.Name != "" && !slices.ContainsFunc(v.spec.ResourceClaims, func(c v1.PodResourceClaim) bool { return c.Name == claim.Name }) {
			v.add(field.NotFound(at, claim.Name))
		}
	}
}

func (v *validator) quantity(name v1.ResourceName, q resource.Quantity, at *field.Path) {
	if q.Sign() < 0 {
		v.invalid(at, q.String(), "must be greater than or equal to 0")
	}
	if isExtended(name) && q.MilliValue()%1000 != 0 {
		v.invalid(at, q.String(), "must be an integer")
	}
	if isHugePages(name) && !wholePages(name, q) {
		v.invalid(at, q.String(), fmt.Sprintf("must be a positive multiple of the page size of %s", name))
	}
}

func wholePages(name v1.ResourceName, q resource.Quantity) bool {
	page, err := resource.ParseQuantity(strings.TrimPrefix(string(name), v1.ResourceHugePagesPrefix))
	return err == nil && page.Value() > 0 && q.Sign() >= 0 && q.Value()%page.Value() == 0
}

func (v *validator) requestAgainstLimit(r *v1.ResourceRequirements, name v1.ResourceName, at *field.Path) {
	request := r.Requests[name]
	limit, limited := r.Limits[name]
	switch {
	case !limited && !mayOvercommit(name):
		v.add(field.Required(at.Child("limits"), "Limit must be set for non overcommitable resources"))
	case !limited:
	case request.Cmp(limit) != 0 && !mayOvercommit(name):
		v.invalid(at.Child("requests"), request.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String()))
	case request.Cmp(limit) > 0:
		v.invalid(at.Child("requests"), request.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String()))
	}
}

func hugePagesOnly(r *v1.ResourceRequirements) bool {
	pages, compute := false, false
	for _, list := range []v1.ResourceList{r.Limits, r.Requests} {
		for name := range list {
			pages = pages || isHugePages(name)
			compute = compute || name == v1.ResourceCPU || name == v1.ResourceMemory
		}
	}
	return pages && !compute
}

// overhead checks what the sandbox itself takes.
func (v *validator) overhead(at *field.Path) {
	for _, name := range sortedNames(v.spec.Overhead) {
		at := at.Key(string(name))
		v.invalid(at, name, containerResourceName(name)...)
		v.quantity(name, v.spec.Overhead[name], at)
	}
	v.forbid(hugePagesOnly(&v1.ResourceRequirements{Limits: v.spec.Overhead}), at, "HugePages require cpu or memory")
}

// podResources checks that what the pod has is enough for its containers.
func (v *validator) podResources(at *field.Path) {
	r := v.spec.Resources
	if r == nil {
		return
	}
	v.forbid(r.Claims != nil, at.Child("claims"), "claims may not be set for Resources at pod-level")
	v.resources(r, at, podResourceName)

	requested := resourcehelper.AggregateContainerRequests(v.pod, resourcehelper.PodResourcesOptions{})
	for _, name := range sortedNames(requested) {
		sum, forPod := requested[name], r.Requests[name]
		if _, set := r.Requests[name]; set && sum.Cmp(forPod) > 0 {
			v.invalid(at.Child("requests").Key(string(name)), forPod.String(), "must be greater than or equal to aggregate container requests of "+sum.String())
		}
	}
	limited := resourcehelper.AggregateContainerLimits(v.pod, resourcehelper.PodResourcesOptions{})
	for _, name := range sortedNames(limited) {
		sum, forPod := limited[name], r.Limits[name]
		if _, set := r.Limits[name]; set && isHugePages(name) && sum.Cmp(forPod) > 0 {
			v.invalid(at.Child("limits").Key(string(name)), forPod.String(), "must be greater than or equal to aggregate container limits of "+sum.String())
		}
	}
	for i := range v.spec.Containers {
		v.limitAgainstPod(&v.spec.Containers[i], field.NewPath("spec", "containers").Index(i).Child("resources", "limits"))
	}
}

func (v *validator) limitAgainstPod(c *v1.Container, at *field.Path) {
	for _, name := range sortedNames(c.Resources.Limits) {
		limit := c.Resources.Limits[name]
		if forPod, set := v.spec.Resources.Limits[name]; set && limit.Cmp(forPod) > 0 {
			v.invalid(at.Key(string(name)), limit.String(), "must be less than or equal to pod limits of "+forPod.String())
		}
	}
}
