// Package devnode is a private node: a containerd with its own root, state, socket, CNI network and cgroup, a registry with
// images on a loopback port, and nothing left behind. `make run` and the end-to-end tests stand on it.
//
// A test package starts one node for all its tests:
//
//	var node *devnode.Node
//
//	func TestMain(m *testing.M) {
//		os.Exit(devnode.Main(m, devnode.Config{}, func(n *devnode.Node) { node = n }))
//	}
//
// The tests run inside the node's mount and PID namespaces (package private), so they see its files, mounts and processes
// at their usual paths, and what they start is an ordinary child process: node.Command.
package devnode
