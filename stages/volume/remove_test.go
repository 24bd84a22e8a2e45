package volume_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/mount-utils"

	"github.com/flowlet/flowlet/stages/volume"
)

func TestTeardownFromWhatIsFound(t *testing.T) {
	f, p := newFixture(t), testPod()
	disk, memory := emptyDir("", ""), emptyDir(corev1.StorageMediumMemory, "")
	memory.Name = "m"
	require.NoError(t, f.dirs.Ensure(t.Context(), p))
	require.NoError(t, f.volumes.Ensure(t.Context(), p, &disk))
	require.NoError(t, f.volumes.Ensure(t.Context(), p, &memory))
	require.NoError(t, os.MkdirAll(f.path(onDisk, "a/b"), 0o755))
	secret := f.path("volumes/kubernetes.io~secret/s") // left by a kubelet
	require.NoError(t, os.MkdirAll(secret, 0o755))
	found, err := f.volumes.Found(p.UID)
	require.NoError(t, err)
	require.Len(t, found, 3)

	require.ErrorContains(t, f.dirs.Remove(t.Context(), state(p)), "volumes are left: "+f.path("volumes/kubernetes.io~empty-dir/m"))
	require.DirExists(t, f.logs+"/ns_p_u1", "nothing is deleted")
	for range 2 {
		require.NoError(t, f.volumes.Unmount(t.Context(), state(p)))
	}
	require.Empty(t, f.mounts.MountPoints)
	require.NoDirExists(t, f.path(onDisk))
	require.NoDirExists(t, f.path("plugins/kubernetes.io~empty-dir/v"))
	require.NoError(t, f.dirs.Remove(t.Context(), state(p)))
	require.NoDirExists(t, f.path())
}

func TestAVolumeOfAnUnknownPluginIsLeftAloneAndNamed(t *testing.T) {
	f, p, v := newFixture(t), testPod(), emptyDir("", "")
	csi := f.path("volumes/kubernetes.io~csi/pv/mount")
	require.NoError(t, os.MkdirAll(csi, 0o755))
	require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
	err := f.volumes.Unmount(t.Context(), state(p))
	require.ErrorContains(t, err, "volume pv of pod")
	require.ErrorContains(t, err, "kubernetes.io~csi")
	require.DirExists(t, csi)
	require.NoDirExists(t, f.path(onDisk), "the others are torn down")
}

func TestUnmountThatFailsKeepsTheContent(t *testing.T) {
	f, p, v := newFixture(t), testPod(), emptyDir(corev1.StorageMediumMemory, "")
	require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
	require.NoError(t, os.WriteFile(f.path(onDisk, "data"), nil, 0o600))
	f.mounts.UnmountFunc = func(string) error { return fmt.Errorf("busy") }
	require.ErrorContains(t, f.volumes.Unmount(t.Context(), state(p)), "busy")
	require.FileExists(t, f.path(onDisk, "data"))
}

func TestRemovalStopsBeforeAMount(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	inside := filepath.Join(dir, "a/mounted")
	require.NoError(t, os.MkdirAll(inside, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "first"), nil, 0o600))
	mounts := mount.NewFakeMounter([]mount.MountPoint{{Path: inside}, {Path: dir + "-other"}})
	require.ErrorContains(t, volume.RemoveTree(dir, mounts), "still mounted: "+inside)
	require.FileExists(t, filepath.Join(dir, "first"))

	link := filepath.Join(t.TempDir(), "link") // a mount is found through a link on the way
	require.NoError(t, os.Symlink(filepath.Dir(dir), link))
	require.ErrorContains(t, volume.RemoveTree(filepath.Join(link, "tree"), mounts), "still mounted")

	mounts.MountPoints = nil
	require.NoError(t, volume.RemoveTree(dir, mounts))
	require.NoDirExists(t, dir)
	require.NoError(t, volume.RemoveTree(dir, mounts))
	require.NoError(t, volume.RemoveTree(filepath.Join(dir, "no/such"), mounts))
}

func TestRemovalDoesNotFollowLinks(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600))
	dir := filepath.Join(root, "tree")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "x"), 0o755))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "x/link")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "kept"), filepath.Join(dir, "file")))
	require.NoError(t, volume.RemoveTree(dir, mount.NewFakeMounter(nil)))
	require.FileExists(t, filepath.Join(outside, "kept"))
	require.NoDirExists(t, dir)
}

func TestRemovalOfALargeDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	require.NoError(t, os.Mkdir(dir, 0o755))
	for i := range 2500 { // more than is read at a time
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
	}
	require.NoError(t, volume.RemoveTree(dir, mount.NewFakeMounter(nil)))
	require.NoDirExists(t, dir)
}

// A pod may make more levels than the agent may open files at a time.
func TestRemovalOfADeepTree(t *testing.T) {
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	low := limit
	low.Cur = 512
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
	defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) }()

	dir := filepath.Join(t.TempDir(), "tree")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "too-deep-1/full"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "too-deep-2"), nil, 0o600))
	at, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	for range 1000 {
		for _, name := range [...]string{"down", "beside"} {
			require.NoError(t, unix.Mkdirat(at, name, 0o755))
		}
		next, err := unix.Openat(at, "down", unix.O_PATH|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		require.NoError(t, unix.Close(at))
		at = next
	}
	require.NoError(t, unix.Close(at))
	require.NoError(t, volume.RemoveTree(dir, mount.NewFakeMounter(nil)))
	require.NoDirExists(t, dir)
}
