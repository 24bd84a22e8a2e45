package volume_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/mount-utils"
	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/volume"
)

// orphan is all that is known of a pod whose directory was found.
func orphan(uid types.UID) *pod.State { return &pod.State{Identity: pod.Identity{UID: uid}} }

func TestUIDsThatHaveDirectories(t *testing.T) {
	f := newFixture(t)
	for _, dir := range []string{
		filepath.Join(f.root, "pods", "u1"), filepath.Join(f.root, "pods", "lost+found"), filepath.Join(f.root, "pods", ".tmp"),
		filepath.Join(f.logs, "ns_p_u1"), filepath.Join(f.logs, "ns_q_u2"), filepath.Join(f.logs, "other"), filepath.Join(f.logs, "a_b"),
	} {
		require.NoError(t, os.MkdirAll(dir, 0o750))
	}
	uids, err := f.dirs.PodUIDs()
	require.NoError(t, err)
	require.Equal(t, []types.UID{"u1", "u2"}, uids)
	require.NoError(t, f.dirs.Remove(t.Context(), orphan("u2")), "it has only logs")
	require.NoDirExists(t, filepath.Join(f.logs, "ns_q_u2"))
	require.DirExists(t, filepath.Join(f.logs, "ns_p_u1"))
}

// TestNothingBelowAMountIsEverRemoved: whatever is mounted wherever below the
// directory of a pod that nobody knows, and however unmounting fails, no file
// that is below a mount at the end is gone.
func TestNothingBelowAMountIsEverRemoved(t *testing.T) {
	base := t.TempDir()
	round := 0
	places := []string{
		"volumes/kubernetes.io~empty-dir/v", "volumes/kubernetes.io~empty-dir/v/in/it", "volumes/kubernetes.io~csi/pv/mount",
		"volumes/kubernetes.io~secret/s", "volume-subpaths/v/c/0", "volume-subpaths/v/c/1", "containers/c", "plugins/kubernetes.io~empty-dir/v", "etc", "",
	}
	rapid.Check(t, func(t *rapid.T) {
		round++
		root := filepath.Join(base, fmt.Sprint(round))
		mounts := mount.NewFakeMounter(nil)
		c := volume.Config{RootDir: root, LogRoot: filepath.Join(root, "logs"), Mounter: mounts}
		volumes, dirs := volume.New(c), volume.NewDirs(c)
		own := filepath.Join(root, "pods", "u1")
		var files []string
		for _, place := range places {
			dir := filepath.Join(own, place)
			require.NoError(t, os.MkdirAll(dir, 0o750))
			files = append(files, filepath.Join(dir, "data"))
			require.NoError(t, os.WriteFile(files[len(files)-1], nil, 0o600))
			for range rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "mounts at "+place) {
				require.NoError(t, mounts.Mount("d", dir, "tmpfs", nil))
			}
		}
		stuck := rapid.SampledFrom(append(places, "none")).Draw(t, "stuck")
		mounts.UnmountFunc = func(path string) error {
			if path == filepath.Join(own, stuck) {
				return errors.New("busy")
			}
			return nil
		}
		for range 2 {
			if err := volumes.Unmount(t.Context(), orphan("u1")); err == nil {
				_ = dirs.Remove(t.Context(), orphan("u1"))
			}
		}
		if rapid.Bool().Draw(t, "remove all the same") {
			_ = dirs.Remove(t.Context(), orphan("u1"))
		}
		left, err := mounts.List()
		require.NoError(t, err)
		for _, m := range left {
			for _, f := range files {
				if within(f, m.Path) {
					require.FileExists(t, f, "below the mount %s", m.Path)
				}
			}
		}
		if len(left) > 0 {
			require.DirExists(t, own)
		}
	})
}

func within(file, dir string) bool {
	rel, err := filepath.Rel(dir, file)
	return err == nil && filepath.IsLocal(rel)
}
