//go:build e2e

package volume_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/stages/volume"
)

// real is a fixture that mounts, as root, below a tmpfs of its own that is
// shared, as a kubelet's root directory is.
func real(t *testing.T) *fixture {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	f := newFixture(t)
	f.volumes.Mounter, f.dirs.Mounter = volume.Syscalls{}, volume.Syscalls{}
	require.NoError(t, os.MkdirAll(f.root, 0o755))
	require.NoError(t, unix.Mount("tmpfs", f.root, "tmpfs", 0, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(f.root, unix.MNT_DETACH)) })
	require.NoError(t, unix.Mount("", f.root, "", unix.MS_SHARED, ""))
	return f
}

// mounted lists the mount points below a directory.
func mounted(t *testing.T, dir string) (out []string) {
	t.Helper()
	all, err := volume.Syscalls{}.List()
	require.NoError(t, err)
	for _, m := range all {
		if rel, err := filepath.Rel(dir, m.Path); err == nil && filepath.IsLocal(rel) && rel != "." {
			out = append(out, rel)
		}
	}
	slices.Sort(out)
	return out
}

// using is a pod that mounts part of v, with its container.
func using(v corev1.Volume) (*corev1.Pod, *corev1.Container) {
	p := testPod(v)
	c := &p.Spec.Containers[0]
	c.VolumeMounts = []corev1.VolumeMount{{Name: "other"}, {Name: "v", SubPath: "set"}}
	return p, c
}

func TestPartOfAVolume(t *testing.T) {
	for _, medium := range []corev1.StorageMedium{"", corev1.StorageMediumMemory} {
		f, v := real(t), emptyDir(medium, "")
		p, c := using(v)
		require.NoError(t, f.dirs.Ensure(t.Context(), p))
		require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
		target, err := f.volumes.SubPath(p, c, 1, "x/y")
		require.NoError(t, err)
		require.Equal(t, f.path("volume-subpaths/v/c/1"), target)
		require.NoError(t, os.WriteFile(filepath.Join(target, "data"), []byte("1"), 0o600))
		data, err := os.ReadFile(f.path(onDisk, "x/y/data"))
		require.NoError(t, err)
		require.Equal(t, "1", string(data))

		again, err := f.volumes.SubPath(p, c, 1, "x/y")
		require.NoError(t, err)
		require.Equal(t, target, again)
		before := mounted(t, f.path("volume-subpaths"))
		require.Equal(t, []string{"v/c/1"}, before, "it is used again")

		// The part is replaced by another directory, then by a file, then by a FIFO.
		require.NoError(t, os.Rename(f.path(onDisk, "x/y"), f.path(onDisk, "x/old")))
		for _, replace := range []func(at string) error{
			func(at string) error { return os.Mkdir(at, 0o755) },
			func(at string) error { return os.WriteFile(at, []byte("file"), 0o600) },
			func(at string) error { return unix.Mkfifo(at, 0o600) },
		} {
			at := f.path(onDisk, "x/y")
			require.NoError(t, os.RemoveAll(at))
			require.NoError(t, replace(at))
			_, err := f.volumes.SubPath(p, c, 1, "x/y")
			require.NoError(t, err)
			is, err := os.Lstat(target)
			require.NoError(t, err)
			want, err := os.Lstat(at)
			require.NoError(t, err)
			require.True(t, os.SameFile(is, want))
			require.Equal(t, before, mounted(t, f.path("volume-subpaths")), "the old one is gone")
		}

		require.ErrorContains(t, f.dirs.Remove(t.Context(), state(p)), "volumes are left")
		for range 2 {
			require.NoError(t, f.volumes.Unmount(t.Context(), state(p)))
		}
		require.Empty(t, mounted(t, f.root))
		require.NoDirExists(t, f.path("volume-subpaths"))
		require.NoError(t, f.dirs.Remove(t.Context(), state(p)))
	}
}

func TestPartsThatLeadOutAreNotMounted(t *testing.T) {
	f, v := real(t), emptyDir("", "")
	p, c := using(v)
	_, err := f.volumes.SubPath(p, c, 1, "x")
	require.ErrorContains(t, err, `subPath "x": volume v of pod ns/p: it is not set up`)
	require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
	w := emptyDir("", "")
	w.Name = "w"
	require.NoError(t, f.volumes.Ensure(t.Context(), p, &w))
	require.NoError(t, os.Symlink("../w", f.path(onDisk, "sibling")))
	require.NoError(t, os.Symlink("/etc", f.path(onDisk, "etc")))
	for _, name := range []string{"../w", "/etc", "a/../../w", "sibling", "etc", "etc/passwd", ""} {
		_, err := f.volumes.SubPath(p, c, 1, name)
		require.Error(t, err, name)
	}
	c.Name = "../c"
	_, err = f.volumes.SubPath(p, c, 1, "x")
	require.Error(t, err)
	require.Empty(t, mounted(t, f.root))
}

// A part of a hostPath is bound, and something is mounted in it afterwards.
// Teardown takes the bound copy away, in use or not, and leaves what the host
// has, content and mounts.
func TestTeardownLeavesTheHostAlone(t *testing.T) {
	f := real(t)
	host := filepath.Join(f.root, "host")
	require.NoError(t, os.MkdirAll(filepath.Join(host, "part/sub"), 0o755))
	v := hostPath(host, corev1.HostPathDirectory)
	p, c := using(v)
	target, err := f.volumes.SubPath(p, c, 1, "part")
	require.NoError(t, err)
	require.NoError(t, unix.Mount("tmpfs", filepath.Join(host, "part/sub"), "tmpfs", 0, ""))
	require.NoError(t, unix.Mount("", filepath.Join(host, "part/sub"), "", unix.MS_SHARED, ""))
	require.NoError(t, os.Mkdir(filepath.Join(host, "part/sub/deep"), 0o755))
	require.NoError(t, unix.Mount("tmpfs", filepath.Join(host, "part/sub/deep"), "tmpfs", 0, ""))
	kept := filepath.Join(host, "part/sub/deep/kept")
	require.NoError(t, os.WriteFile(kept, nil, 0o600))
	require.FileExists(t, filepath.Join(target, "sub/deep/kept"), "mounts are shared, as with a kubelet")
	inUse, err := os.Open(target)
	require.NoError(t, err)
	defer func() { _ = inUse.Close() }()

	require.NoError(t, f.volumes.Unmount(t.Context(), state(p)))
	require.Equal(t, []string{"host/part/sub", "host/part/sub/deep"}, mounted(t, f.root))
	require.FileExists(t, kept)
	require.NoDirExists(t, f.path("volume-subpaths"))
}

// What is stopped between any two steps is found again: a target without a
// mount, with a mount of something else, with a mount of something that is gone.
func TestPartsThatACrashLeft(t *testing.T) {
	f, v := real(t), emptyDir("", "")
	p, c := using(v)
	require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
	target := f.path("volume-subpaths/v/c/1")
	require.NoError(t, os.MkdirAll(target, 0o755))
	require.NoError(t, os.WriteFile(f.path(onDisk, "file"), []byte("x"), 0o600))
	_, err := f.volumes.SubPath(p, c, 1, "file")
	require.NoError(t, err, "a directory where a file is to be")
	require.NoError(t, os.Remove(f.path(onDisk, "file")))
	require.NoError(t, unix.Unmount(target, 0))
	require.NoError(t, unix.Mount("/etc/hostname", target, "", unix.MS_BIND, ""))
	_, err = f.volumes.SubPath(p, c, 1, "dir")
	require.NoError(t, err, "a file, and a mount of something else")
	require.Equal(t, []string{"v/c/1"}, mounted(t, f.path("volume-subpaths")))
	require.NoError(t, os.Remove(f.path(onDisk, "dir")))
	require.NoError(t, os.MkdirAll(f.path("volume-subpaths/unmounted/c/0"), 0o755))
	require.NoError(t, f.volumes.Unmount(t.Context(), state(p)))
	require.NoDirExists(t, f.path("volume-subpaths"))
	require.Empty(t, mounted(t, f.root))
}

func TestDownwardAPIInMemory(t *testing.T) {
	f, v := real(t), downward(field("d/a", "metadata.name"))
	p := testPod(v)
	for range 2 {
		require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
	}
	require.Equal(t, []string{"pods/u1/" + downwardAPI}, mounted(t, f.root))
	require.Equal(t, map[string]string{"d/a": "p"}, seen(t, f.path(downwardAPI)))
	require.NoError(t, f.volumes.Unmount(t.Context(), state(p)))
	require.Empty(t, mounted(t, f.root))
	require.NoDirExists(t, f.path(downwardAPI))
}
