//go:build e2e

package e2e_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/stages/cgroup"
	"github.com/flowlet/flowlet/test/devnode/images/inside"
)

// pidsOfPods is the agent's podPidsLimit.
const pidsOfPods = 321

// limits are values in the kernel, -1 for none.
type limits struct{ shares, quota, memory int64 }

// sizes are the pods of each QoS class: the cgroups of pods and containers have the kubelet's names and values.
func sizes() []view {
	return []view{
		ofClass("guaranteed", "{limits: {cpu: 500m, memory: 64Mi}}", "kubepods", limits{512, 50000, 64 << 20}, -997),
		ofClass("burstable", "{requests: {cpu: 100m, memory: 32Mi}, limits: {memory: 64Mi}}", "kubepods/burstable", limits{102, -1, 64 << 20}, 999),
		ofClass("besteffort", "{}", "kubepods/besteffort", limits{2, -1, -1}, 1000),
		ofClass("tiny", "{requests: {cpu: 1m}, limits: {cpu: 1m}}", "kubepods/burstable", limits{2, 1000, -1}, 999),
	}
}

// ofClass is a pod with one container, so that both have the same values.
func ofClass(name, resources, parent string, want limits, oom int) view {
	return view{name: name, shows: "cgroup v1, cgroupfs driver: names and values for pods and containers, oom_score_adj, limit of PIDs (" + name + ")", until: isReady, spec: `
containers: [{name: main, image: IMAGE, args: [report, -stay], resources: ` + resources + `}]
`, check: func(s *seen) {
		tree, err := cgroup.Detect()
		require.NoError(s, err)
		s.until("the report is there", func() error { return missing(s.output(s.pod, "main"), "}\n") })
		r := s.report("main")
		class := strings.TrimPrefix(parent, "kubepods/")
		if class == "kubepods" {
			class = "guaranteed"
		}
		require.Equal(s, class, strings.ToLower(string(s.pod.Status.QOSClass)))
		dir := filepath.Join(s.node.CgroupRoot, parent, "pod"+string(s.pod.UID))
		require.Equal(s, want, limitsOf(s.T, tree, dir), "pod")
		require.Equal(s, strconv.Itoa(pidsOfPods), valueOf(s.T, tree, "pids", dir+"/pids.max"))
		require.Equal(s, want, numbers(s.T, r.Limits["cpu.shares"], r.Limits["cpu.cfs_quota_us"], r.Limits["memory.limit_in_bytes"]), "container")
		require.Equal(s, "100000", r.Limits["cpu.cfs_period_us"])
		id := strings.TrimPrefix(status(s.pod, "main").ContainerID, "containerd://")
		require.True(s, strings.HasSuffix(r.Cgroup["memory"], filepath.Join(dir, id)), r.Cgroup["memory"])
		score, err := strconv.Atoi(r.OOMScore)
		require.NoError(s, err)
		require.InDelta(s, s.lowestScore(oom), score, 1) // crun leaves 0 alone, and the runtime's own is 1
	}}
}

// limitsOf reads the values of a cgroup; the weight of v2 has no shares to compare with.
func limitsOf(t *testing.T, tree cgroup.Tree, path string) limits {
	t.Helper()
	if tree.V2 {
		t.Skip("the values of cgroup v2 are others")
	}
	read := func(controller, file string) string { return valueOf(t, tree, controller, filepath.Join(path, file)) }
	return numbers(t, read("cpu", "cpu.shares"), read("cpu", "cpu.cfs_quota_us"), read("memory", "memory.limit_in_bytes"))
}

func valueOf(t *testing.T, tree cgroup.Tree, controller, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(tree.Mounts[controller], file))
	require.NoError(t, err)
	return strings.TrimSpace(string(b))
}

func numbers(t *testing.T, shares, quota, memory string) limits {
	t.Helper()
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		if n >= 1<<62 {
			return -1
		}
		return n
	}
	return limits{number(shares), number(quota), number(memory)}
}

// lowestScore is what becomes of a wanted oom_score_adj: where this machine lacks the right to lower scores, the runtime
// leaves out what it may not do.
func (s *seen) lowestScore(want int) int {
	s.Helper()
	own, err := strconv.Atoi(strings.TrimSpace(s.ownFile("/proc/self/oom_score_adj")))
	require.NoError(s, err)
	const sysResource = 24
	if hex(s, inside.Fields(s.ownFile("/proc/self/status"))["CapEff"])&(1<<sysResource) == 0 {
		return max(want, own)
	}
	return want
}

// hex is a set of capabilities.
func hex(s *seen, text string) uint64 {
	s.Helper()
	n, err := strconv.ParseUint(text, 16, 64)
	require.NoError(s, err)
	return n
}
