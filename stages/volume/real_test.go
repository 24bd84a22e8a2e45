//go:build e2e

package volume_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/mount-utils"

	"github.com/flowlet/flowlet/stages/volume"
)

func TestRealMounts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	f := newFixture(t)
	f.volumes.Mounter, f.dirs.Mounter = volume.Syscalls{}, volume.Syscalls{}
	v := emptyDir(corev1.StorageMediumMemory, "1Mi")
	p := testPod(v)
	t.Cleanup(func() { _ = unix.Unmount(f.path(onDisk), unix.UMOUNT_NOFOLLOW) })
	for range 2 {
		require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
	}
	var fs unix.Statfs_t
	require.NoError(t, unix.Statfs(f.path(onDisk), &fs))
	require.EqualValues(t, unix.TMPFS_MAGIC, fs.Type)
	require.EqualValues(t, 1<<20, fs.Blocks*uint64(fs.Bsize))
	require.ErrorContains(t, volume.RemoveTree(f.path(), volume.Syscalls{}), "still mounted")
	require.NoError(t, f.volumes.Unmount(t.Context(), state(p)))
	require.NoError(t, f.dirs.Remove(t.Context(), state(p)))
	require.NoDirExists(t, f.path())
}

// A mount that the list does not show, because it came after it was read, is
// not entered: neither of another device nor a bind mount on the same one.
func TestRemovalAsksTheKernelForMounts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	for name, with := range map[string]struct {
		source string
		fstype string
		flags  uintptr
	}{
		"tmpfs": {"tmpfs", "tmpfs", 0}, "bind": {t.TempDir(), "", unix.MS_BIND},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "tree")
			target := filepath.Join(dir, "a/mounted")
			require.NoError(t, os.MkdirAll(target, 0o755))
			require.NoError(t, unix.Mount(with.source, target, with.fstype, with.flags, ""))
			t.Cleanup(func() { require.NoError(t, unix.Unmount(target, unix.UMOUNT_NOFOLLOW)) })
			data := filepath.Join(target, "data")
			require.NoError(t, os.WriteFile(data, nil, 0o600))
			require.ErrorContains(t, volume.RemoveTree(dir, mount.NewFakeMounter(nil)), "is a mount point")
			require.FileExists(t, data)
		})
	}
}

// There is no server at that address: mount(8) says so, or that this kernel
// or node has no NFS.
func TestRealMountOfNFSFailsLoudly(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	f := newFixture(t)
	f.volumes.Mounter = volume.Syscalls{}
	v := nfs("127.0.0.1", "/exports/a", false)
	require.ErrorContains(t, f.volumes.Ensure(t.Context(), testPod(v), &v), "nfs export 127.0.0.1:/exports/a: mount failed")
	require.NoDirExists(t, f.path("volumes/kubernetes.io~nfs/v"))
}
