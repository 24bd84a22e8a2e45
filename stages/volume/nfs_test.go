package volume_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/mount-utils"
)

func nfs(server, path string, readOnly bool) corev1.Volume {
	v := corev1.Volume{Name: "v"}
	v.NFS = &corev1.NFSVolumeSource{Server: server, Path: path, ReadOnly: readOnly}
	return v
}

func TestNFSIsMountedOnceAndUnmountedWithThePod(t *testing.T) {
	f := newFixture(t)
	v := nfs("files.example", "/exports/a", true)
	p := testPod(v)
	_, err := f.volumes.VolumePath(p, "v")
	require.ErrorContains(t, err, "it is not set up")
	for range 2 {
		require.NoError(t, f.volumes.Ensure(t.Context(), p, &v))
	}
	dir := f.path("volumes/kubernetes.io~nfs/v")
	require.Equal(t, []mount.MountPoint{{Device: "files.example:/exports/a", Path: dir, Type: "nfs", Opts: []string{"ro"}}}, f.mounts.MountPoints)
	path, err := f.volumes.VolumePath(p, "v")
	require.NoError(t, err)
	require.Equal(t, dir, path)

	require.NoError(t, f.volumes.Unmount(t.Context(), state(p)))
	require.Empty(t, f.mounts.MountPoints)
	require.NoDirExists(t, dir)
}

func TestNFSServerWithAnIPv6Address(t *testing.T) {
	f := newFixture(t)
	v := nfs("fd00::1", "/", false)
	require.NoError(t, f.volumes.Ensure(t.Context(), testPod(v), &v))
	require.Equal(t, "[fd00::1]:/", f.mounts.MountPoints[0].Device)
	require.Empty(t, f.mounts.MountPoints[0].Opts)
}

// Neither a mount that fails nor a server that came and went may cost data.
func TestNFSLosesNothing(t *testing.T) {
	f := newFixture(t)
	v := nfs("files.example", "/exports/a", false)
	p := testPod(v)
	dir := f.path("volumes/kubernetes.io~nfs/v")
	f.volumes.Mounter = refusing{f.mounts}
	err := f.volumes.Ensure(t.Context(), p, &v)
	require.ErrorContains(t, err, "volume v of pod ns/p: nfs export files.example:/exports/a: access denied by server")
	require.NoDirExists(t, dir)

	// A process that wrote beneath a mount that was gone has left a file.
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data"), nil, 0o600))
	require.ErrorContains(t, f.volumes.Unmount(t.Context(), state(p)), "removing the mount point v")
	require.FileExists(t, filepath.Join(dir, "data"))
}

type refusing struct{ *mount.FakeMounter }

func (refusing) Mount(string, string, string, []string) error {
	return errors.New("access denied by server")
}
