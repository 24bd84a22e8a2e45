package cgroup_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/stages/cgroup"
)

func TestMemoryOfAllPods(t *testing.T) {
	for name, tc := range map[string]struct {
		v2    bool
		files map[string]string
	}{
		"v1": {false, map[string]string{"memory.usage_in_bytes": "1000\n", "memory.stat": "inactive_file 1\ntotal_inactive_file 300\n"}},
		"v2": {true, map[string]string{"memory.current": "1000\n", "memory.stat": "anon 5\ninactive_file 300\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			mount := t.TempDir()
			m, err := cgroup.New(cgroup.Config{Driver: cgroup.Cgroupfs, PerQOS: true, Node: cgroup.Values{Memory: 5000}},
				cgroup.Tree{V2: tc.v2, Mounts: map[string]string{"memory": mount}})
			require.NoError(t, err)
			used, limit, err := m.MemoryUse()
			require.NoError(t, err)
			require.Zero(t, used+limit, "there are no pods yet")
			dir := filepath.Join(mount, "kubepods")
			require.NoError(t, os.Mkdir(dir, 0o755))
			for name, text := range tc.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			used, limit, err = m.MemoryUse()
			require.NoError(t, err)
			require.EqualValues(t, 700, used, "files that were not used of late can be dropped")
			require.EqualValues(t, 5000, limit)
			require.NoError(t, os.Remove(filepath.Join(dir, "memory.stat")))
			_, _, err = m.MemoryUse()
			require.ErrorContains(t, err, "measuring the memory of all pods")
		})
	}
}
