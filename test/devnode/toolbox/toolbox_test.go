package toolbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/test/devnode/toolbox"
)

func TestRepoIsTheCheckoutOfThisTest(t *testing.T) {
	repo, err := toolbox.Repo()
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(repo, "test", "devnode", "toolbox", "toolbox_test.go"))

	t.Chdir(t.TempDir())
	_, err = toolbox.Repo()
	require.ErrorContains(t, err, "not inside a checkout")
}

// A build is found again only when nothing that decides about it changed.
func TestIDStandsForModulesAndFlags(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	id := func(tags string) string {
		id, err := toolbox.ID(tags, dir)
		require.NoError(t, err)
		return id
	}
	write("go.mod", "module x")
	write("go.sum", "a")
	first := id("seccomp")
	require.Equal(t, first, id("seccomp"))
	require.NotEqual(t, first, id(""))
	write("go.sum", "b")
	require.NotEqual(t, first, id("seccomp"))
}
