package volume_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/stages/volume"
)

func TestDirectoriesOfAPod(t *testing.T) {
	f, p := newFixture(t), testPod()
	for range 2 {
		require.NoError(t, f.dirs.Ensure(t.Context(), p))
	}
	for _, dir := range []string{f.path("volumes"), f.path("plugins"), f.path("containers"), f.logs + "/ns_p_u1/c", f.logs + "/ns_p_u1/i"} {
		require.DirExists(t, dir)
	}
	info, err := os.Stat(f.path())
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o027, "nobody else reads it")
	logDir, err := f.dirs.LogDir(p)
	require.NoError(t, err)
	require.Equal(t, f.logs+"/ns_p_u1", logDir)

	other := testPod()
	other.UID = "u2"
	require.NoError(t, f.dirs.Ensure(t.Context(), other))
	uids, err := f.dirs.PodUIDs()
	require.NoError(t, err)
	require.Equal(t, []types.UID{"u1", "u2"}, uids)

	require.NoError(t, f.dirs.Remove(t.Context(), state(p)))
	require.NoError(t, f.dirs.Remove(t.Context(), state(p)), "gone is fine")
	require.NoDirExists(t, f.path())
	require.NoDirExists(t, f.logs+"/ns_p_u1")
	require.DirExists(t, f.logs+"/ns_p_u2", "another pod of that name")
}

func TestNamesThatLeadOutAreRefused(t *testing.T) {
	f := newFixture(t)
	for _, uid := range []types.UID{"", "..", "a/b"} {
		p := testPod()
		p.UID = uid
		require.ErrorContains(t, f.dirs.Ensure(t.Context(), p), "ns/p")
		require.Error(t, f.dirs.Remove(t.Context(), state(p)))
		_, err := f.dirs.NewTerminationLog(uid, "c")
		require.Error(t, err)
		require.Error(t, f.dirs.WriteHosts(uid, volume.Hosts{}))
	}
	_, err := f.dirs.NewTerminationLog("u1", "../c")
	require.Error(t, err)
}

func TestTerminationLogsAreFreshAndOpenToAll(t *testing.T) {
	f := newFixture(t)
	first, err := f.dirs.NewTerminationLog("u1", "c")
	require.NoError(t, err)
	second, err := f.dirs.NewTerminationLog("u1", "c")
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	require.Equal(t, f.path("containers/c"), filepath.Dir(first))
	require.Len(t, filepath.Base(first), 8)
	info, err := os.Stat(first)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o666), info.Mode().Perm())
}

func TestHostsContent(t *testing.T) {
	const local = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
	aliases := []corev1.HostAlias{{IP: "1.2.3.4", Hostnames: []string{"a", "b"}}, {IP: "::5", Hostnames: []string{"c"}}}
	tests := []struct {
		name  string
		hosts volume.Hosts
		want  string
	}{
		{"no address yet", volume.Hosts{Hostname: "p"}, local},
		{"name", volume.Hosts{Hostname: "p", IPs: []string{"10.0.0.1", "fd00::1"}}, local + "10.0.0.1\tp\nfd00::1\tp\n"},
		{"domain", volume.Hosts{Hostname: "p", Domain: "sub.ns.svc.x", IPs: []string{"10.0.0.1"}}, local + "10.0.0.1\tp.sub.ns.svc.x\tp\n"},
		{"aliases", volume.Hosts{Hostname: "p", Aliases: aliases}, local + "\n# Entries added by HostAliases.\n1.2.3.4\ta\tb\n::5\tc\n"},
		{
			"host network",
			volume.Hosts{HostNetwork: true, IPs: []string{"9.9.9.9"}, Aliases: aliases[1:]},
			"# Kubernetes-managed hosts file (host network).\nNODE\n\n# Entries added by HostAliases.\n::5\tc\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Empty(t, cmp.Diff(tt.want, tt.hosts.Content("NODE\n")))
		})
	}
}

func TestHostsFileKeepsItsInode(t *testing.T) {
	f, p := newFixture(t), testPod()
	require.NoError(t, f.dirs.Ensure(t.Context(), p))
	node := filepath.Join(t.TempDir(), "hosts")
	require.NoError(t, os.WriteFile(node, []byte("NODE\n"), 0o600))
	f.dirs.NodeHosts = node
	require.NoError(t, f.dirs.WriteHosts("u1", volume.Hosts{Hostname: "p", IPs: []string{"10.0.0.1"}}))
	path := f.dirs.HostsFile("u1")
	require.Equal(t, f.path("etc-hosts"), path)
	before, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, f.dirs.WriteHosts("u1", volume.Hosts{HostNetwork: true}))
	after, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "running containers have it mounted")
	require.Equal(t, os.FileMode(0o644), after.Mode().Perm())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "# Kubernetes-managed hosts file (host network).\nNODE\n", string(data))
}
