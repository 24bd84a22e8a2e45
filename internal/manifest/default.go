package manifest

import (
	"strings"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// Default fills in what the API server fills in when a pod is created: the
// defaults of all fields, then those of pod-level resources, which it derives
// once all containers are known. It is idempotent and leaves the status alone.
func Default(pod *v1.Pod) {
	defaultFields(pod)
	defaultPodResources(pod)
}

func defaultFields(pod *v1.Pod) {
	spec := &pod.Spec
	defaultSpec(spec)
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
	plain := append(pointers(spec.InitContainers), pointers(spec.Containers)...)
	for _, c := range plain {
		requestLimits(&c.Resources)
		if spec.HostNetwork {
			openOnHost(c.Ports)
		}
	}
	for _, c := range plain {
		defaultContainer(c)
	}
	for i := range spec.EphemeralContainers {
		defaultContainer((*v1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	roundUp(spec.Overhead)
	if spec.Resources != nil {
		roundUp(spec.Resources.Limits, spec.Resources.Requests)
	}
}

func pointers(containers []v1.Container) []*v1.Container {
	out := make([]*v1.Container, len(containers))
	for i := range containers {
		out[i] = &containers[i]
	}
	return out
}

func defaultSpec(spec *v1.PodSpec) {
	setIfEmpty(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	setIfEmpty(&spec.DNSPolicy, v1.DNSClusterFirst)
	setIfEmpty(&spec.RestartPolicy, v1.RestartPolicyAlways)
	setIfEmpty(&spec.SchedulerName, v1.DefaultSchedulerName)
	setIfNil(&spec.SecurityContext, v1.PodSecurityContext{})
	setIfNil(&spec.TerminationGracePeriodSeconds, v1.DefaultTerminationGracePeriodSeconds)
	if *spec.TerminationGracePeriodSeconds < 0 {
		spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	}
	setIfNil(&spec.EnableServiceLinks, v1.DefaultEnableServiceLinks)
}

func defaultContainer(c *v1.Container) {
	setIfEmpty(&c.ImagePullPolicy, pullPolicy(c.Image))
	setIfEmpty(&c.TerminationMessagePath, v1.TerminationMessagePathDefault)
	setIfEmpty(&c.TerminationMessagePolicy, v1.TerminationMessageReadFile)
	for i := range c.Ports {
		setIfEmpty(&c.Ports[i].Protocol, v1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			defaultFieldRef(from.FieldRef)
			if from.FileKeyRef != nil {
				setIfNil(&from.FileKeyRef.Optional, false)
			}
		}
	}
	roundUp(c.Resources.Limits, c.Resources.Requests)
	for _, probe := range []*v1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		defaultProbe(probe)
	}
	if c.Lifecycle != nil {
		for _, hook := range []*v1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if hook != nil {
				defaultHTTPGet(hook.HTTPGet)
			}
		}
	}
}

func defaultProbe(probe *v1.Probe) {
	if probe == nil {
		return
	}
	setIfEmpty(&probe.TimeoutSeconds, 1)
	setIfEmpty(&probe.PeriodSeconds, 10)
	setIfEmpty(&probe.SuccessThreshold, 1)
	setIfEmpty(&probe.FailureThreshold, 3)
	defaultHTTPGet(probe.HTTPGet)
	if probe.GRPC != nil {
		setIfNil(&probe.GRPC.Service, "")
	}
}

func defaultHTTPGet(get *v1.HTTPGetAction) {
	if get != nil {
		setIfEmpty(&get.Path, "/")
		setIfEmpty(&get.Scheme, v1.URISchemeHTTP)
	}
}

func defaultFieldRef(ref *v1.ObjectFieldSelector) {
	if ref != nil {
		setIfEmpty(&ref.APIVersion, "v1")
	}
}

// pullPolicy is Always for the tag latest, written or implied, because it is
// expected to move.
func pullPolicy(image string) v1.PullPolicy {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return v1.PullIfNotPresent
	}
	tagged, hasTag := named.(reference.Tagged)
	_, hasDigest := named.(reference.Digested)
	if (hasTag && tagged.Tag() == "latest") || (!hasTag && !hasDigest) {
		return v1.PullAlways
	}
	return v1.PullIfNotPresent
}

// requestLimits requests what is limited where nothing else is requested.
func requestLimits(r *v1.ResourceRequirements) {
	if r.Limits == nil {
		return
	}
	if r.Requests == nil {
		r.Requests = v1.ResourceList{}
	}
	for name, limit := range r.Limits {
		if _, ok := r.Requests[name]; !ok {
			r.Requests[name] = limit.DeepCopy()
		}
	}
}

// openOnHost gives every port of a host-network pod the same port of the host.
func openOnHost(ports []v1.ContainerPort) {
	for i := range ports {
		setIfEmpty(&ports[i].HostPort, ports[i].ContainerPort)
	}
}

// roundUp rounds quantities up to thousandths, the finest that the API keeps.
func roundUp(lists ...v1.ResourceList) {
	for _, list := range lists {
		for name, quantity := range list {
			quantity.RoundUp(resource.Milli)
			list[name] = quantity
		}
	}
}

func setIfEmpty[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func setIfNil[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func isHugePages(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}
