package tracing

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file that a killed agent was writing is removed by the next; others stay.
func TestPartialFilesOfAKilledAgentAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a" + suffix, "b" + suffix + partial, "notes.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	f := &files{dir: dir, keep: 10}
	require.NoError(t, f.open())
	require.Equal(t, []string{"a" + suffix}, f.names)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2)
	require.NoFileExists(t, filepath.Join(dir, "b"+suffix+partial))
}
