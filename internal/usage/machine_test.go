package usage_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/usage"
)

// proc writes files as below /proc.
func proc(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func TestMemoryThatIsLeft(t *testing.T) {
	a, err := usage.Memory(proc(t, map[string]string{"meminfo": `MemTotal:        1000 kB
MemFree:          100 kB
MemAvailable:     700 kB
Active(file):      50 kB
Inactive(file):   200 kB
HugePages_Total:       0
`}))
	require.NoError(t, err)
	require.Equal(t, usage.Amount{Available: 300 << 10, Capacity: 1000 << 10}, a,
		"files that were not used of late can be dropped at once")
	_, err = usage.Memory(proc(t, map[string]string{"meminfo": "MemTotal: 5 kB\n"}))
	require.ErrorContains(t, err, "has no line MemFree")
}

func TestProcessesThatAreLeft(t *testing.T) {
	files := map[string]string{"sys/kernel/pid_max": "32768\n", "sys/kernel/threads-max": "1000\n", "loadavg": "0.1 0.2 0.3 4/345 999\n"}
	a, err := usage.PIDs(proc(t, files))
	require.NoError(t, err)
	require.Equal(t, usage.Amount{Available: 655, Capacity: 1000}, a, "the smaller limit counts")
	files["loadavg"] = "what?"
	_, err = usage.PIDs(proc(t, files))
	require.ErrorContains(t, err, "is not what the kernel writes")
}

func TestThisMachineCanBeMeasured(t *testing.T) {
	a, err := usage.Memory("/proc")
	require.NoError(t, err)
	require.Positive(t, a.Available)
	require.Less(t, a.Available, a.Capacity)
	a, err = usage.PIDs("/proc")
	require.NoError(t, err)
	require.Positive(t, a.Available)
	fs, err := usage.Space(t.TempDir())
	require.NoError(t, err)
	require.Positive(t, fs.Bytes.Capacity)
	require.NotZero(t, fs.Device)
}
