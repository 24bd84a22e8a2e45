// Package hook runs the lifecycle hooks of containers. When they run, and how
// long they may take, is decided elsewhere: a hook ends with its context.
//
// Numbers and words are those of kubelet v1.37.2.
package hook
