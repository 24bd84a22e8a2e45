// Package cgroup makes, updates and removes the cgroups above a pod's
// containers: kubepods, its QoS levels and one cgroup for each pod, named as
// the kubelet names them, for cgroup v1 and v2 and both drivers.
//
// Names and values are pure functions of the pod (name.go, values.go); Manager
// applies them. All of its methods are idempotent, may be called from several
// goroutines for different pods, and block for the time of a few writes to
// /sys/fs/cgroup (with the systemd driver: of a D-Bus call).
package cgroup
