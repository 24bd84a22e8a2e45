package sweep_test

import (
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/test/devnode/sweep"
)

func TestNewIsFoundAgain(t *testing.T) {
	dir := t.TempDir()
	_, err := sweep.Load(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)

	made, err := sweep.New(dir)
	require.NoError(t, err)
	require.Equal(t, 24, made.PodCIDR.Bits())
	require.LessOrEqual(t, len(made.Bridge), 15, "the kernel's limit for interface names")

	found, err := sweep.Load(dir)
	require.NoError(t, err)
	require.Equal(t, made, found)
}

func TestLoadRefusesWhatNamesNoNode(t *testing.T) {
	for name, content := range map[string]string{"damaged": "{", "empty": "{}", "another cgroup": `{"id":"1","cgroup":"/"}`} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "state.json"), []byte(content), 0o644))
			_, err := sweep.Load(dir)
			require.ErrorContains(t, err, "remove it")
		})
	}
}

func TestParseRoutes(t *testing.T) {
	const table = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	0	00000000	0	0	0
eth0	000200C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
br0	0000D50A	00000000	0001	0	0	0	0000FFFF	0	0	0
`
	require.Equal(t, []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("10.213.0.0/16")}, sweep.ParseRoutes(table))
}
