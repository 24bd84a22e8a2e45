package volume_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestHostPathTypes(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("file"), []byte("kept"), 0o600))
	require.NoError(t, os.Symlink(dir, at("link")))
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", at("socket"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, socket.Close()) })

	tests := []struct {
		name string
		path string
		kind corev1.HostPathType
		err  string
	}{
		{"no check", at("absent"), corev1.HostPathUnset, ""},
		{"directory", dir, corev1.HostPathDirectory, ""},
		{"link to a directory", at("link"), corev1.HostPathDirectory, ""},
		{"directory is absent", at("absent"), corev1.HostPathDirectory, "hostPath type check failed: " + at("absent") + " is not a directory"},
		{"directory is a file", at("file"), corev1.HostPathDirectory, "is not a directory"},
		{"made directory", at("new/deep"), corev1.HostPathDirectoryOrCreate, ""},
		{"existing file for a directory", at("file"), corev1.HostPathDirectoryOrCreate, "is not a directory"},
		{"file", at("file"), corev1.HostPathFile, ""},
		{"file is absent", at("absent"), corev1.HostPathFile, "is not a file"},
		{"made file", at("made"), corev1.HostPathFileOrCreate, ""},
		{"made file without its directory", at("no/made"), corev1.HostPathFileOrCreate, "no such file"},
		{"existing file", at("file"), corev1.HostPathFileOrCreate, ""},
		{"directory for a file", dir, corev1.HostPathFileOrCreate, "is not a file"},
		{"socket", at("socket"), corev1.HostPathSocket, ""},
		{"file for a socket", at("file"), corev1.HostPathSocket, "is not a socket file"},
		{"character device", "/dev/null", corev1.HostPathCharDev, ""},
		{"character device for a block device", "/dev/null", corev1.HostPathBlockDev, "is not a block device"},
		{"file for a character device", at("file"), corev1.HostPathCharDev, "is not a character device"},
		{"unknown type", dir, "Tape", `type "Tape" is not known`},
		{"leads upwards", dir + "/../x", corev1.HostPathUnset, "may not contain"},
	}
	f := newFixture(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := hostPath(tt.path, tt.kind)
			err := f.volumes.Ensure(t.Context(), testPod(v), &v)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				require.ErrorContains(t, err, "volume v of pod ns/p")
				return
			}
			require.NoError(t, err)
			got, err := f.volumes.VolumePath(testPod(v), "v")
			require.NoError(t, err)
			require.Equal(t, tt.path, got)
		})
	}
	data, err := os.ReadFile(at("file"))
	require.NoError(t, err)
	require.Equal(t, "kept", string(data))
	require.NoDirExists(t, at("absent"))
}
