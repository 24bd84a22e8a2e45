package evict

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/usage"
)

// Candidate is a pod that could be evicted.
type Candidate struct {
	Key  pod.Key
	Pod  *v1.Pod
	Used *usage.Pod // nil: nothing is known
}

// ranked is a candidate with what its place follows from.
type ranked struct {
	Candidate
	over     bool  // it takes more than it requested
	priority int32 // of the pod
	excess   int64 // taken above the request
}

// Rank orders pods by how soon they are evicted when the node runs short of
// what the signal tells: those of unknown use first, then those that take more
// than they requested, then by low priority, then by how much more they take.
func Rank(s Signal, n *usage.Node, pods []Candidate) []Candidate {
	list := make([]ranked, len(pods))
	for i, c := range pods {
		list[i] = rank(s, n, c)
	}
	slices.SortStableFunc(list, func(a, b ranked) int {
		return cmp.Or(
			first(a.Used == nil, b.Used == nil),
			first(a.over, b.over),
			cmp.Compare(a.priority, b.priority),
			cmp.Compare(b.excess, a.excess),
		)
	})
	out := make([]Candidate, len(list))
	for i, r := range list {
		out[i] = r.Candidate
	}
	return out
}

// first puts those for which it is so before the others.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func rank(s Signal, n *usage.Node, c Candidate) ranked {
	r := ranked{Candidate: c}
	if c.Pod.Spec.Priority != nil {
		r.priority = *c.Pod.Spec.Priority
	}
	if c.Used == nil {
		return r
	}
	requests := resource.PodRequests(c.Pod, resource.PodResourcesOptions{})
	what := s.about().resource
	request := requests[what]
	switch what {
	case v1.ResourceMemory:
		r.excess = c.Used.Memory() - request.Value()
	case v1.ResourceEphemeralStorage:
		r.excess = onDisk(c.Used, countedFor(s, n)).Bytes - request.Value()
	case resourceInodes:
		r.excess = onDisk(c.Used, countedFor(s, n)).Inodes
	case resourcePIDs:
		r.excess = c.Used.Processes // nobody requests processes
		return r
	}
	r.over = r.excess > 0
	return r
}

// countedFor returns which of a pod's files are on the file system that the
// signal is about.
func countedFor(s Signal, n *usage.Node) counted {
	node := s == NodeFsAvailable || s == NodeFsInodesFree
	device := n.Images.Device
	if node {
		device = n.Nodefs.Device
	}
	onNodefs := device == n.Nodefs.Device
	return counted{logs: onNodefs, volumes: onNodefs, layers: device == n.Layers.Device}
}
