package pod

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// Room is what a pod takes of the node that another pod then cannot have. It is
// in the state file, for a pod that runs while nobody tells its spec.
type Room struct {
	Requests v1.ResourceList    `json:"requests,omitempty"`
	Ports    []v1.ContainerPort `json:"ports,omitempty"` // host ports of containers that run side by side
}

// RoomOf returns what a pod takes.
func RoomOf(p *v1.Pod) Room {
	r := Room{Requests: resource.PodRequests(p, resource.PodResourcesOptions{})}
	add := func(c *v1.Container) {
		for _, port := range c.Ports {
			if port.HostPort > 0 {
				r.Ports = append(r.Ports, v1.ContainerPort{HostPort: port.HostPort, HostIP: port.HostIP, Protocol: port.Protocol})
			}
		}
	}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; Sidecar(c) {
			add(c)
		}
	}
	for i := range p.Spec.Containers {
		add(&p.Spec.Containers[i])
	}
	return r
}

// Takes returns what the pod takes of the node: as its spec says, else as the
// state file does.
func (s *State) Takes() Room {
	if p := s.Pod(); p != nil {
		return RoomOf(p)
	}
	return s.Room
}
