// Package usage measures what the node and its pods take: memory, processes,
// and bytes and inodes on disk. It measures and judges nothing; who compares
// with limits and thresholds is elsewhere.
package usage

import "time"

// Disk is what files take on a file system.
type Disk struct {
	Bytes  int64
	Inodes int64
}

// Plus returns the sum.
func (d Disk) Plus(o Disk) Disk { return Disk{d.Bytes + o.Bytes, d.Inodes + o.Inodes} }

// Container is what one container of a pod takes.
type Container struct {
	Name     string
	Memory   int64 // working set in bytes: what the kernel could not take back at once
	Writable Disk  // what it wrote over its image
	Logs     Disk
}

// Pod is what one pod takes.
type Pod struct {
	Containers []Container // those that the runtime has figures of, by name
	Volumes    map[string]Disk
	Processes  int64
}

// Memory returns the sum of the containers' working sets in bytes. Files in
// volumes in memory are part of it: the kernel charges them to a container.
func (p *Pod) Memory() int64 {
	var sum int64
	for _, c := range p.Containers {
		sum += c.Memory
	}
	return sum
}

// Amount is how much there is of something and how much of it is left.
type Amount struct{ Available, Capacity int64 }

// Filesystem is the space of one file system.
type Filesystem struct {
	Bytes  Amount
	Inodes Amount // Capacity 0: the file system does not count them
	Device uint64 // the same number is the same file system
}

// Node is what the machine has left.
type Node struct {
	At     time.Time
	Memory Amount     // bytes
	Pods   Amount     // bytes of memory that all pods together may have; Capacity 0: no limit
	PIDs   Amount     // processes
	Nodefs Filesystem // of the agent's root directory: volumes and logs
	Images Filesystem // of the runtime's images
	Layers Filesystem // of what containers write over their images
}
