//go:build e2e

package e2e_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/stages/cgroup"
)

// limits are values in the kernel, -1 for none.
type limits struct{ shares, quota, memory int64 }

// The cgroups of pods and containers of all three classes have the kubelet's names and values.
func TestResources(t *testing.T) {
	classes := map[string]struct {
		resources      string
		parent         string
		pod, container limits
		oom            int
	}{
		"guaranteed": {
			"{limits: {cpu: 500m, memory: 64Mi}}", "kubepods",
			limits{512, 50000, 64 << 20},
			limits{512, 50000, 64 << 20},
			-997,
		},
		"burstable": {
			"{requests: {cpu: 100m, memory: 32Mi}, limits: {memory: 64Mi}}", "kubepods/burstable",
			limits{102, -1, 64 << 20},
			limits{102, -1, 64 << 20},
			999,
		},
		"besteffort": {"{}", "kubepods/besteffort", limits{2, -1, -1}, limits{2, -1, -1}, 1000},
	}
	a := newAgent(t, node)
	for name, c := range classes {
		a.write(name+".yaml", podOf(name, "containers: [{name: main, image: IMAGE, resources: "+c.resources+", args: [log, -every, 1h, up]}]"))
	}
	a.start()
	tree, err := cgroup.Detect()
	require.NoError(t, err)
	for name, c := range classes {
		t.Run(name, func(t *testing.T) {
			a := a.in(t)
			p := a.untilPod(name, "is ready", isReady)
			require.Equal(t, name, strings.ToLower(string(p.Status.QOSClass)))
			path := filepath.Join(a.node.CgroupRoot, c.parent, "pod"+string(p.UID))
			require.Equal(t, c.pod, limitsOf(t, tree, path), "pod")
			path = filepath.Join(path, strings.TrimPrefix(status(p, "main").ContainerID, "containerd://"))
			require.Equal(t, c.container, limitsOf(t, tree, path), "container")
			a.oomScore(p, c.oom)
		})
	}
}

// limitsOf reads the values of a cgroup; the weight of v2 has no shares to compare with.
func limitsOf(t *testing.T, tree cgroup.Tree, path string) limits {
	t.Helper()
	read := func(controller, file string) string {
		b, err := os.ReadFile(filepath.Join(tree.Mounts[controller], path, file))
		require.NoError(t, err)
		return strings.Fields(string(b))[0]
	}
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if text == "max" || n >= 1<<62 {
			return -1
		}
		require.NoError(t, err)
		return n
	}
	if tree.V2 {
		t.Skip("the values of cgroup v2 are others")
	}
	return limits{
		shares: number(read("cpu", "cpu.shares")), quota: number(read("cpu", "cpu.cfs_quota_us")),
		memory: number(read("memory", "memory.limit_in_bytes")),
	}
}

// oomScore checks the score of a container's process. Where this machine lacks the right to lower scores, the runtime leaves
// out what it may not do.
func (a *agent) oomScore(p *v1.Pod, want int) {
	a.t.Helper()
	var info struct{ Info struct{ PID int } }
	require.NoError(a.t, a.crictlJSON(&info, "inspect", strings.TrimPrefix(status(p, "main").ContainerID, "containerd://")))
	read := func(pid string) int {
		b, err := os.ReadFile(filepath.Join("/proc", pid, "oom_score_adj"))
		require.NoError(a.t, err)
		n, err := strconv.Atoi(strings.TrimSpace(string(b)))
		require.NoError(a.t, err)
		return n
	}
	own, err := os.ReadFile("/proc/self/status")
	require.NoError(a.t, err)
	caps, err := strconv.ParseUint(fields(string(own))["CapEff"], 16, 64)
	require.NoError(a.t, err)
	const sysResource = 24
	if lowest := read("self"); caps&(1<<sysResource) == 0 && want < lowest {
		want = lowest
	}
	require.Equal(a.t, want, read(strconv.Itoa(info.Info.PID)))
}
