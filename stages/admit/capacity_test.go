package admit_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/stages/admit"
)

func TestCapacity(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "meminfo"), []byte(text), 0o600))
	}
	write("MemFree: 1 kB\nMemTotal:       24576 kB\n")
	got, err := admit.CapacityIn(dir, dir, 110)
	require.NoError(t, err)
	require.Equal(t, int64(24576<<10), got.Memory().Value())
	require.Equal(t, int64(110), got.Pods().Value())
	require.Positive(t, got.Cpu().Value())
	require.Positive(t, got.StorageEphemeral().Value())

	write("MemFree: 1 kB\n")
	_, err = admit.CapacityIn(dir, dir, 0)
	require.ErrorContains(t, err, "has no line MemTotal")
	_, err = admit.Capacity(filepath.Join(dir, "none"), 0)
	require.ErrorContains(t, err, "ephemeral storage")
}

func TestHugePagesAreCapacity(t *testing.T) {
	dir := t.TempDir()
	for name, n := range map[string]string{"hugepages-2048kB": "3\n", "hugepages-1048576kB": "0\n", "hugepages-64kB": "odd"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "nr_hugepages"), []byte(n), 0o600))
	}
	got := admit.HugePagesIn(dir)
	require.Len(t, got, 2)
	two, one := got["hugepages-2Mi"], got["hugepages-1Gi"]
	require.Equal(t, int64(6<<20), two.Value())
	require.Zero(t, one.Value())
	require.Empty(t, admit.HugePagesIn(filepath.Join(dir, "none")))
}

func TestSafeSysctlsByKernel(t *testing.T) {
	require.Len(t, admit.SafeSysctlsOf("3.10.0-1160.el7"), 5)
	require.Len(t, admit.SafeSysctlsOf("4.4.0"), 6)
	require.Len(t, admit.SafeSysctlsOf("4.5"), 9)
	require.Len(t, admit.SafeSysctlsOf("4.14.1"), 11)
	require.Len(t, admit.SafeSysctlsOf("6.1.0-28-amd64"), 14)
	require.Len(t, admit.SafeSysctlsOf("odd"), 5)
	require.NotEmpty(t, admit.SafeSysctls())
}
