package evict

import (
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/usage"
)

// Signal is something that the node can run short of, as in the field
// evictionHard.
type Signal string

// The signals. What is containerfs for the kubelet is one of the two file
// systems, and is watched as that one.
const (
	MemoryAvailable            Signal = "memory.available"
	AllocatableMemoryAvailable Signal = "allocatableMemory.available" // of what pods may have; not to be configured
	NodeFsAvailable            Signal = "nodefs.available"
	NodeFsInodesFree           Signal = "nodefs.inodesFree"
	ImageFsAvailable           Signal = "imagefs.available"
	ImageFsInodesFree          Signal = "imagefs.inodesFree"
	PIDAvailable               Signal = "pid.available"
)

// inert are signals that may be configured and are not watched for themselves.
func inert(s Signal) bool {
	return s == "containerfs.available" || s == "containerfs.inodesFree" || s == AllocatableMemoryAvailable
}

// about says what a signal means.
type about struct {
	condition v1.NodeConditionType
	resource  v1.ResourceName
	read      func(n *usage.Node) usage.Amount
}

const (
	resourcePIDs   v1.ResourceName = "pids"
	resourceInodes v1.ResourceName = "inodes"
)

func meaning(s Signal) (about, bool) {
	switch s {
	case MemoryAvailable:
		return about{v1.NodeMemoryPressure, v1.ResourceMemory, func(n *usage.Node) usage.Amount { return n.Memory }}, true
	case AllocatableMemoryAvailable:
		return about{v1.NodeMemoryPressure, v1.ResourceMemory, func(n *usage.Node) usage.Amount { return n.Pods }}, true
	case NodeFsAvailable:
		return about{v1.NodeDiskPressure, v1.ResourceEphemeralStorage, func(n *usage.Node) usage.Amount { return n.Nodefs.Bytes }}, true
	case NodeFsInodesFree:
		return about{v1.NodeDiskPressure, resourceInodes, func(n *usage.Node) usage.Amount { return n.Nodefs.Inodes }}, true
	case ImageFsAvailable:
		return about{v1.NodeDiskPressure, v1.ResourceEphemeralStorage, func(n *usage.Node) usage.Amount { return n.Images.Bytes }}, true
	case ImageFsInodesFree:
		return about{v1.NodeDiskPressure, resourceInodes, func(n *usage.Node) usage.Amount { return n.Images.Inodes }}, true
	case PIDAvailable:
		return about{v1.NodePIDPressure, resourcePIDs, func(n *usage.Node) usage.Amount { return n.PIDs }}, true
	}
	return about{}, false
}

// Signals returns all signals that are watched.
func Signals() []Signal {
	return []Signal{
		MemoryAvailable, AllocatableMemoryAvailable, NodeFsAvailable, NodeFsInodesFree, ImageFsAvailable, ImageFsInodesFree, PIDAvailable,
	}
}

// Read returns what a measurement says about the signal.
func (s Signal) Read(n *usage.Node) usage.Amount { return s.about().read(n) }

func (s Signal) about() about {
	a, _ := meaning(s)
	return a
}
