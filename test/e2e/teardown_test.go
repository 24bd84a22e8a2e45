//go:build e2e

package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/flowlet/flowlet/test/devnode/sweep"
)

// tearDown ends the agent and its pods in the orderly way, and checks that nothing is left. After a failure it says what
// the agent knows, and takes everything away by force.
func (a *agent) tearDown() {
	defer a.clean()
	if a.t.Failed() {
		a.tell()
		return
	}
	if a.proc == nil {
		a.start()
	}
	files, err := filepath.Glob(filepath.Join(a.manifests, "*"))
	require.NoError(a.t, err)
	for _, f := range files {
		require.NoError(a.t, os.RemoveAll(f))
	}
	a.untilGone()
	a.stop()
	require.Empty(a.t, a.leftovers())
}

// tell logs what the agent knows.
func (a *agent) tell() {
	if a.proc != nil {
		out, _ := a.run("get", "pods")
		a.t.Logf("flowlet get pods:\n%s", out)
		out, _ = a.run("get", "node")
		a.t.Logf("flowlet get node:\n%s", out)
		pods, _ := a.list()
		for _, p := range pods {
			out, _ := a.run("get", "pod", string(p.UID))
			a.t.Logf("flowlet get pod %s:\n%s", p.Name, out)
			out, _ = a.run("why", string(p.UID))
			a.t.Logf("flowlet why %s:\n%s", p.Name, out)
		}
	}
	b, _ := os.ReadFile(a.log)
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	a.t.Logf("the end of %s:\n%s", a.log, strings.Join(lines[max(0, len(lines)-60):], "\n"))
}

// clean takes away by force what a failed test left. After a good one there is nothing but directories.
func (a *agent) clean() {
	if a.proc != nil {
		a.kill()
	}
	if out, err := a.crictl("pods", "-q"); err == nil && len(out) > 0 {
		_, _ = a.crictl("rmp", "-a", "-f")
	}
	for _, m := range slices.Backward(mountsBelow(a.dir)) {
		_ = unix.Unmount(m, unix.MNT_DETACH)
	}
	for _, c := range slices.Backward(cgroupsBelow(a.node.CgroupRoot)) {
		_ = os.Remove(c)
	}
	_ = os.RemoveAll(a.dir)
	for _, dir := range []string{"/var/log/pods", "/var/log/containers"} {
		for _, name := range entries(dir) {
			_ = os.RemoveAll(filepath.Join(dir, name))
		}
	}
}

// leftovers is all that pods could have left on the node.
func (a *agent) leftovers() (left []string) {
	add := func(kind string, names ...string) {
		for _, n := range names {
			left = append(left, kind+" "+n)
		}
	}
	for _, kind := range []string{"pods", "ps"} {
		out, err := a.crictl(kind, map[string]string{"pods": "-q", "ps": "-aq"}[kind])
		require.NoError(a.t, err)
		add("crictl "+kind, strings.Fields(string(out))...)
	}
	add("mount", mountsBelow(a.root)...)
	add("pod directory", entries(filepath.Join(a.root, "pods"))...)
	add("state file", entries(filepath.Join(a.root, "flowlet", "pods"))...)
	add("log directory", entries("/var/log/pods")...)
	add("log link", entries("/var/log/containers")...)
	add("network namespace", entries("/run/netns")...)
	add("address", a.addresses()...)
	for _, c := range cgroupsBelow(a.node.CgroupRoot) {
		if strings.Contains(filepath.Base(c), "pod") && !strings.HasPrefix(filepath.Base(c), "kubepods") {
			add("cgroup", c)
		}
	}
	return left
}

// addresses are the pod IPs that the network plugin has given out.
func (a *agent) addresses() (ips []string) {
	_ = filepath.WalkDir(filepath.Join(a.node.Dir, "mem", "ipam"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Count(d.Name(), ".") == 3 && !strings.HasPrefix(d.Name(), "last") {
			ips = append(ips, d.Name())
		}
		return nil
	})
	return ips
}

// mountsBelow lists mount points below a directory, outer ones first.
func mountsBelow(dir string) (points []string) {
	b, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], dir+"/") {
			points = append(points, f[4])
		}
	}
	return points
}

// cgroupsBelow lists the cgroups below one, in all hierarchies, outer ones first.
func cgroupsBelow(root string) (dirs []string) {
	mounts, _ := sweep.CgroupMounts()
	for _, m := range mounts {
		top := filepath.Join(m.Path, root)
		_ = filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && path != top {
				dirs = append(dirs, path)
			}
			return nil
		})
	}
	return dirs
}

// entries are the names in a directory, none when it does not exist.
func entries(dir string) (names []string) {
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}
