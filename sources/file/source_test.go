package file_test

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/manifest"
	"github.com/flowlet/flowlet/sources/file"
)

// in runs a script in virtual time against a source that has been started.
func in(t *testing.T, script func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.end()
		script(t, w)
	})
}

func TestTellsAllThenSyncedThenChanges(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("b.yaml", pod("b", "b:1"))
		w.put("a.yml", pod("a", "a:1"))
		w.start()
		require.Equal(t, []string{"set default/a-n1 a:1", "set default/b-n1 b:1", "synced"}, w.told())
		w.edit("c.json", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"c"},"spec":{"containers":[{"name":"c","image":"c:1"}]}}`)
		require.Equal(t, []string{"set default/c-n1 c:1"}, w.told())
		w.edit("a.yml", "")
		require.Equal(t, []string{"gone default/a-n1 a:1"}, w.told())
	})
}

func TestEmptyDirectoryIsSynced(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.start()
		require.Equal(t, []string{"synced"}, w.told())
		require.Empty(t, w.source.Files())
	})
}

func TestEditIsGoneThenSet(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("a.yaml", pod("a", "a:1"))
		w.start()
		before := w.status("a.yaml")
		w.told()
		w.edit("a.yaml", pod("a", "a:2"))
		require.Equal(t, []string{"gone default/a-n1 a:1", "set default/a-n1 a:2"}, w.told())
		require.NotEqual(t, before.UID, w.status("a.yaml").UID)
	})
}

func TestEditWithItsOwnUIDIsAnUpdate(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("a.yaml", pod("a", "a:1", uid("u-1")))
		w.start()
		seen := w.updates[0].Pod.Annotations[manifest.AnnotationSeen]
		w.told()
		w.put("a.yaml", pod("a", "a:2", uid("u-1")))
		w.notify()
		w.pass(time.Second)
		require.Equal(t, types.UID("u-1"), w.updates[0].UID)
		require.Equal(t, seen, w.updates[0].Pod.Annotations[manifest.AnnotationSeen], "first seen stays")
		require.Equal(t, []string{"set default/a-n1 a:2"}, w.told())
	})
}

// BC-01: the same UID comes back, ten times.
func TestRemovedAndAddedAgainWithTheSameUID(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.start()
		w.told()
		for range 10 {
			w.edit("s.yaml", pod("s", "s:1", uid("u-1")))
			require.Equal(t, []string{"set default/s-n1 s:1"}, w.told())
			w.edit("s.yaml", "")
			require.Equal(t, []string{"gone default/s-n1 s:1"}, w.told())
		}
	})
}

func TestSameContentIsNoUpdate(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("a.yaml", pod("a", "a:1"))
		w.start()
		w.told()
		w.edit("a.yaml", pod("a", "a:1"))
		w.edit("a.yaml", "# a comment\n"+pod("a", "a:1"))
		w.pass(10 * time.Minute)
		require.Empty(t, w.told())
	})
}

func TestOnlyWhatIsOnDiskAtTheLookCounts(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.start()
		w.told()
		for i := range 6 {
			w.put("a.yaml", pod("a", fmt.Sprintf("a:%d", i)))
			w.notify()
			w.pass(10 * time.Millisecond)
		}
		w.pass(time.Second)
		require.Equal(t, []string{"set default/a-n1 a:5"}, w.told())
	})
}

func TestStreamOfEditsIsSeenInTheEnd(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.start()
		w.told()
		w.put("a.yaml", pod("a", "a:1"))
		for range 30 {
			w.notify()
			w.pass(20 * time.Millisecond)
		}
		require.Equal(t, []string{"set default/a-n1 a:1"}, w.told())
	})
}

func TestHalfWrittenFileKeepsItsPod(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("a.yaml", pod("a", "a:1"))
		w.start()
		w.told()
		w.edit("a.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: ")
		require.Empty(t, w.told())
		require.Zero(t, w.logged("a.yaml"), "nothing is said before it has settled")
		status := w.status("a.yaml")
		require.ErrorContains(t, status.Err, "half-written?")
		require.Equal(t, "default/a-n1", status.FullName)
		w.pass(3 * time.Second)
		require.Equal(t, 1, w.logged("manifest is not used as it is"))
		w.pass(10 * time.Minute)
		require.Equal(t, 1, w.logged("manifest is not used as it is"), "said once")

		w.edit("a.yaml", pod("a", "a:1"))
		require.Empty(t, w.told(), "the running pod was never touched")
		require.NoError(t, w.status("a.yaml").Err)
	})
}

func TestQuickRewriteIsNotWorthAWord(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("a.yaml", pod("a", "a:1"))
		w.start()
		w.edit("a.yaml", "apiVersion: v1\n")
		w.edit("a.yaml", pod("a", "a:2"))
		w.pass(time.Minute)
		require.Zero(t, w.logged("not used"))
	})
}

// BC-07: one bad file does not keep the others.
func TestInvalidFileIsNamedWithLineAndField(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("a.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  labels: {}\nspec:\n  containers:\n  - {name: c, image: i}\n")
		w.put("b.yaml", pod("b", "b:1"))
		w.start()
		require.Equal(t, []string{"set default/b-n1 b:1", "synced"}, w.told())
		require.EqualError(t, w.status("a.yaml").Err, "/manifests/a.yaml:3: metadata.name missing")
		require.Empty(t, w.status("a.yaml").UID)
	})
}

func TestUnreadableFileKeepsItsPod(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("a.yaml", pod("a", "a:1"))
		w.start()
		w.told()
		w.failRead("a.yaml", syscall.EIO)
		w.edit("x.txt", "x")
		require.Empty(t, w.told())
		require.ErrorIs(t, w.status("a.yaml").Err, syscall.EIO)
		w.failRead("a.yaml", nil)
		w.pass(20 * time.Second)
		require.NoError(t, w.status("a.yaml").Err)
		require.Empty(t, w.told())
	})
}

func TestUnreadableDirectorySaysNothing(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.fail(fs.ErrPermission, nil)
		w.put("a.yaml", pod("a", "a:1"))
		w.start()
		w.pass(time.Minute)
		require.Empty(t, w.told(), "not synced")
		require.Equal(t, 1, w.logged("cannot be read"))
		w.fail(nil, nil)
		w.pass(time.Second)
		require.Equal(t, []string{"set default/a-n1 a:1", "synced"}, w.told())
		w.fail(syscall.EIO, nil)
		w.pass(time.Minute)
		require.Empty(t, w.told(), "nothing is gone")
	})
}

func TestMissingPathIsEmptyAndLookedForAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.fail(fs.ErrNotExist, fs.ErrNotExist)
		w.start()
		require.Equal(t, []string{"synced"}, w.told())
		w.fail(nil, nil)
		w.put("a.yaml", pod("a", "a:1"))
		w.pass(time.Second)
		require.Equal(t, []string{"set default/a-n1 a:1"}, w.told())
		require.Equal(t, 1, w.watches)
	})
}

func TestSingleFile(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("pod.manifest", pod("a", "a:1")) // named by the user: its ending does not matter
		w.start(func(c *file.Config) { c.Path = dir + "/pod.manifest" })
		require.Equal(t, []string{"set default/a-n1 a:1", "synced"}, w.told())
		w.edit("pod.manifest", pod("a", "a:2"))
		require.Equal(t, []string{"gone default/a-n1 a:1", "set default/a-n1 a:2"}, w.told())
		w.edit("pod.manifest", "")
		require.Equal(t, []string{"gone default/a-n1 a:2"}, w.told())
	})
}

// BC-05, first half.
func TestOtherFilesAreIgnoredAndListedOnce(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("a.yaml", pod("a", "a:2"))
		for _, name := range []string{"a.yaml.backup", "a.yaml~", "a.yaml.bak", ".a.yaml.swp", ".hidden.yaml", "#a.yaml#", "README"} {
			w.put(name, pod("a", "a:1"))
		}
		w.put("sub", "dir")
		w.put("..data", "dir")
		w.start()
		require.Equal(t, []string{"set default/a-n1 a:2", "synced"}, w.told())
		w.pass(10 * time.Minute)
		require.Equal(t, 1, w.logged("not manifests"))
		require.Equal(t, 1, w.logged("a.yaml.backup: its name does not end in .yaml, .yml or .json"))
		require.Equal(t, 1, w.logged("sub: it is a directory"))
		require.Equal(t, "its name begins with a dot", w.status(".hidden.yaml").Ignored)
		require.Len(t, w.source.Files(), 9)
		w.edit("new.txt", "x")
		require.Equal(t, 2, w.logged("not manifests"), "a new one is said alone")
	})
}

func TestWatcherThatFailsLeavesThePeriodicLook(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.fail(nil, syscall.EMFILE)
		w.start()
		w.told()
		w.put("a.yaml", pod("a", "a:1"))
		w.pass(19 * time.Second)
		require.Empty(t, w.told())
		w.pass(time.Second)
		require.Equal(t, []string{"set default/a-n1 a:1"}, w.told())
		w.pass(10 * time.Minute)
		require.Equal(t, 1, w.logged("not notified"))
		w.fail(nil, nil)
		w.pass(20 * time.Second)
		require.Equal(t, 1, w.watches, "it is tried again")
	})
}

func TestLostWatchIsRenewed(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.start()
		w.told()
		close(w.changed)
		w.pass(time.Second)
		require.Equal(t, 1, w.watches)
		w.edit("a.yaml", pod("a", "a:1"))
		require.Equal(t, []string{"set default/a-n1 a:1"}, w.told())
	})
}

func TestRunAgainTellsAllAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("a.yaml", pod("a", "a:1"))
		w.put("b.yaml", pod("b", "b:1"))
		w.start()
		w.told()
		w.stop(errors.New("restarted"))
		<-w.done
		w.put("b.yaml", "")
		w.run()
		require.Equal(t, []string{"gone default/b-n1 b:1", "set default/a-n1 a:1", "synced"}, w.told())
	})
}

func TestWarningsAreLoggedOncePerVersion(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		odd := "  colour: red\n"
		w.put("a.yaml", pod("a", "a:1", odd))
		w.start()
		w.pass(time.Minute)
		require.Equal(t, 1, w.logged(`unknown field "metadata.colour"`))
		require.Len(t, w.status("a.yaml").Warnings, 1)
		w.edit("a.yaml", pod("a", "a:2", odd))
		require.Equal(t, 2, w.logged(`unknown field "metadata.colour"`))
	})
}
