package podstore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/podstore"
)

func TestSecondAgentIsToldWhoHasTheRoot(t *testing.T) {
	root := t.TempDir()
	first, err := podstore.LockRoot(root)
	require.NoError(t, err)
	_, err = podstore.LockRoot(root)
	require.ErrorContains(t, err, "root directory "+root+" is in use by another agent (pid "+fmt.Sprint(os.Getpid())+", since ")
	require.ErrorContains(t, err, "stop it, or use another --root-dir")
	require.NoError(t, first.Unlock())
	again, err := podstore.LockRoot(root)
	require.NoError(t, err)
	require.NoError(t, again.Unlock())
}

func TestLockThatADeadAgentLeft(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "flowlet"), 0o750))
	path := filepath.Join(root, "flowlet", "lock")
	require.NoError(t, os.WriteFile(path, []byte("pid 4194305, since long ago, and more text than a new holder writes into it\n"), 0o600))
	lock, err := podstore.LockRoot(root)
	require.NoError(t, err)
	defer lock.Unlock()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Regexp(t, fmt.Sprintf(`^pid %d, since \S+\n$`, os.Getpid()), string(data), "nothing of the dead one is left")
}

func TestRootThatIsNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := podstore.LockRoot(file)
	require.ErrorContains(t, err, "making root directory "+file)
}
