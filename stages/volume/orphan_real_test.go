//go:build e2e

package volume_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/stages/volume"
)

// What an agent left that died without cleaning up: a volume in memory, one on
// disk with a part of it bound for a container, and something that is none of
// the agent's mounted among it.
func TestOrphanWithRealMounts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	f := newFixture(t)
	f.volumes.Mounter, f.dirs.Mounter = volume.Syscalls{}, volume.Syscalls{}
	memory, disk := emptyDir(corev1.StorageMediumMemory, "1Mi"), emptyDir("", "")
	memory.Name = "m"
	p := testPod(memory, disk)
	require.NoError(t, f.dirs.Ensure(t.Context(), p))
	require.NoError(t, f.volumes.Ensure(t.Context(), p, &memory))
	require.NoError(t, f.volumes.Ensure(t.Context(), p, &disk))

	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "precious"), []byte("data"), 0o600))
	bind := func(target string) {
		require.NoError(t, os.MkdirAll(target, 0o755))
		require.NoError(t, unix.Mount(outside, target, "", unix.MS_BIND, ""))
		t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) })
	}
	foreign := f.path("containers/c/foreign")
	bind(f.path("volume-subpaths/v/c/0"))
	bind(f.path(onDisk, "in/it"))
	bind(foreign)
	t.Cleanup(func() { _ = unix.Unmount(f.path("volumes/kubernetes.io~empty-dir/m"), unix.MNT_DETACH) })

	require.NoError(t, f.volumes.Unmount(t.Context(), orphan(p.UID)))
	require.ErrorContains(t, f.dirs.Remove(t.Context(), orphan(p.UID)), "still mounted: "+foreign)
	require.FileExists(t, filepath.Join(foreign, "precious"))
	require.NoError(t, unix.Unmount(foreign, unix.UMOUNT_NOFOLLOW))
	require.NoError(t, f.dirs.Remove(t.Context(), orphan(p.UID)))
	require.NoDirExists(t, f.path())
	require.NoDirExists(t, f.logs+"/ns_p_u1")
	require.FileExists(t, filepath.Join(outside, "precious"))
	left, err := volume.Syscalls{}.List()
	require.NoError(t, err)
	for _, m := range left {
		require.NotContains(t, m.Path, f.root)
	}
}
