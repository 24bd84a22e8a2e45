// Package volume keeps what a pod has on the host's file system: its
// directories with /etc/hosts, termination logs and logs (Dirs), and its
// volumes (Volumes). Both live in one package because they share the layout of
// a pod's directory, which is the kubelet's, and the rule that nothing is ever
// deleted across a mount.
//
// Files that the agent writes into a volume change all at once (swapper). What
// containers wrote is not trusted: a part of a volume is opened without leaving
// it, and bound by its handle, not by its name (SubPath).
//
// All methods are idempotent, may be called from several goroutines for
// different pods, and block for as long as the file system does. Teardown
// works from what is found on the disk, not from what a spec says.
package volume
