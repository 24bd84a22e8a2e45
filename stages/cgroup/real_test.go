//go:build e2e

package cgroup_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/cgroups"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	words "github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/cgroup"
)

// TestRealCgroups makes cgroups below a root of its own on this machine and
// removes them.
func TestRealCgroups(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	cgroups.TestMode = false
	t.Cleanup(func() { cgroups.TestMode = true })
	tree, err := cgroup.Detect()
	require.NoError(t, err)
	root := fmt.Sprintf("/flowlet-test-%d", os.Getpid())
	m, err := cgroup.New(cgroup.Config{
		Driver: cgroup.Cgroupfs, PerQOS: true, Root: root,
		Limits: cgroup.Limits{CFSQuota: true, PodPids: 50}, Node: cgroup.Values{CPUShares: 2048, Memory: 1 << 30, Pids: 1000},
	}, tree)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := m.RemoveNode(t.Context()); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		for _, mount := range tree.Mounts {
			_ = os.Remove(mount + root)
			require.NoDirExists(t, mount+root)
		}
	})
	t.Log(m.Degraded())
	require.NoError(t, m.EnsureNode(t.Context()))
	p := pod("500m", "500m", "64Mi", "64Mi")
	for range 2 {
		require.NoError(t, m.Ensure(t.Context(), p))
	}
	file := func(controller, v1, v2 string) string {
		name := v1
		if tree.V2 {
			name = v2
		}
		data, err := os.ReadFile(filepath.Join(tree.Mounts[controller], m.ParentFor(p), name))
		require.NoError(t, err)
		return strings.TrimSpace(string(data))
	}
	require.Equal(t, "67108864", file("memory", "memory.limit_in_bytes", "memory.max"))
	require.Equal(t, "50", file("pids", "pids.max", "pids.max"))
	require.NotEmpty(t, file("cpuset", "cpuset.cpus", "cpuset.cpus.effective"), "or no container starts below it")
	require.NotEmpty(t, file("cpuset", "cpuset.mems", "cpuset.mems.effective"))
	uids, err := m.PodUIDs()
	require.NoError(t, err)
	require.Equal(t, []types.UID{uid}, uids)

	// The runtime makes the cgroups of containers in all hierarchies.
	for _, mount := range tree.Mounts {
		require.NoError(t, os.MkdirAll(filepath.Join(mount, m.ParentFor(p), "container"), 0o755))
	}

	// A process in one hierarchy holds the pod up until it has ended. The end of the pod ends it.
	sleep := exec.Command("sleep", "600")
	require.NoError(t, sleep.Start())
	procs := filepath.Join(tree.Mounts["memory"], m.ParentFor(p), "cgroup.procs")
	werr := os.WriteFile(procs, []byte(strconv.Itoa(sleep.Process.Pid)), 0o600)
	var busy *cgroup.BusyError
	rerr := m.RemovePod(t.Context(), uid)
	kerr := m.Remove(t.Context(), &words.State{Identity: words.Identity{UID: uid}})
	if kerr == nil || werr != nil {
		_ = sleep.Process.Kill()
	}
	ended := sleep.Wait()
	require.NoError(t, werr)
	require.ErrorAs(t, rerr, &busy)
	require.Equal(t, []int{sleep.Process.Pid}, busy.PIDs)
	require.ErrorAs(t, kerr, &busy, "it is still there, and is killed")
	require.ErrorContains(t, ended, "killed")

	require.NoError(t, m.RemovePod(t.Context(), uid))
	require.NoError(t, m.RemovePod(t.Context(), uid))
	for _, mount := range tree.Mounts {
		require.NoDirExists(t, filepath.Join(mount, m.ParentFor(p)))
	}
	uids, err = m.PodUIDs()
	require.NoError(t, err)
	require.Empty(t, uids)
}
