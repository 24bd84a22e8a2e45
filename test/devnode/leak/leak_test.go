package leak_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/test/devnode/leak"
)

func TestDiffNamesWhatIsNew(t *testing.T) {
	before := leak.Snapshot{"link": {"lo"}, "sysctl": {"ip_forward = 0"}}
	after := leak.Snapshot{"link": {"lo", "flowlet1"}, "sysctl": {"ip_forward = 1"}, "mount": {"/x"}}
	require.Equal(t, []string{"link: flowlet1", "mount: /x", "sysctl: ip_forward = 1"}, leak.Diff(before, after))
	require.Empty(t, leak.Diff(after, after))
}

func TestTakeSeesThisProcessAndItsFiles(t *testing.T) {
	before, err := leak.Take()
	require.NoError(t, err)
	require.NotEmpty(t, before["process"])
	require.NotEmpty(t, before["mount"])

	f, err := os.CreateTemp("", "devnode-leak")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.Remove(f.Name()) })
	require.NoError(t, f.Close())
	after, err := leak.Take()
	require.NoError(t, err)
	require.Contains(t, leak.Diff(before, after), "file: "+f.Name())
}

func TestOwnLeavesOutOtherNodes(t *testing.T) {
	diff := []string{
		"cgroup: /sys/fs/cgroup/cpu/flowlet-aaaaaa/pod", "cgroup: /sys/fs/cgroup/cpu/flowlet-bbbbbb/pod", "link: /sys/class/net/veth1",
		"process: 7 vi", "cgroup: /sys/fs/cgroup/cpu/user.slice/x", "process: 8 containerd --config /work/mem/containerd.toml",
	}
	mine := func(id string) bool { return id == "aaaaaa" }
	alone := leak.Snapshot{"cgroup": {"/sys/fs/cgroup/cpu/flowlet-aaaaaa"}}
	require.Equal(t, []string{diff[0], diff[1], diff[2], diff[5]}, leak.Own(diff, alone, mine))
	crowd := leak.Snapshot{"cgroup": {"/sys/fs/cgroup/cpu/flowlet-aaaaaa", "/sys/fs/cgroup/cpu/flowlet-bbbbbb"}}
	require.Equal(t, []string{diff[0], diff[5]}, leak.Own(diff, crowd, mine))
}
