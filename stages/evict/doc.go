// Package evict ends pods that take more of the node than they may: those over
// a limit of local storage, and, when the node itself runs short of memory,
// disk or processes, one pod at a time until it has enough. What to do is
// decided by pure functions of what was measured; [Manager.Round] does it.
//
// An eviction is a verdict of the node ([pod.Judged]); the pod's own graph
// takes it down. Words, numbers and order are those of kubelet v1.37.2.
package evict
