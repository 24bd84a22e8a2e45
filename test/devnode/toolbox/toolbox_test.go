package toolbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
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

func TestCacheIsFilledOnce(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, err := toolbox.Cached("x", func(string) error { return errors.New("no compiler") })
	require.EqualError(t, err, "no compiler")

	filled, dirs, errs := 0, make([]string, 4), make([]error, 4) // the cache's lock guards filled
	var group sync.WaitGroup
	for i := range dirs {
		group.Go(func() {
			dirs[i], errs[i] = toolbox.Cached("x", func(dir string) error {
				filled++
				return os.WriteFile(filepath.Join(dir, "program"), nil, 0o755)
			})
		})
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, 1, filled)
	require.FileExists(t, filepath.Join(dirs[3], "program"))
	cache, err := toolbox.CacheDir()
	require.NoError(t, err)
	left, err := filepath.Glob(filepath.Join(cache, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{dirs[0], dirs[0] + ".lock"}, left, "nothing of failed or concurrent calls is left")
}
