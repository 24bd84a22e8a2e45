package file_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/sources/file"
)

// BC-05, second half.
func TestSameNameTwiceRunningOneIsKept(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("b.yaml", pod("p", "b:1"))
		w.start()
		w.told()
		w.edit("a.yaml", pod("p", "a:1"))
		w.pass(200 * time.Second) // ten scans
		require.Empty(t, w.told())
		require.Equal(t, "pod default/p-n1 is already defined by /manifests/b.yaml", w.status("a.yaml").Conflict)
		require.Equal(t, 1, w.logged("already defined"))

		w.edit("b.yaml", pod("p", "b:2"))
		require.Equal(t, []string{"gone default/p-n1 b:1", "set default/p-n1 b:2"}, w.told(), "an edit keeps the name")
		w.edit("b.yaml", "")
		require.Equal(t, []string{"gone default/p-n1 b:2", "set default/p-n1 a:1"}, w.told(), "then the other takes over")
		require.Empty(t, w.status("a.yaml").Conflict)
	})
}

func TestSameNameTwiceAtFirstSight(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("b.yaml", pod("p", "b:1"))
		w.put("a.yaml", pod("p", "a:1"))
		w.start()
		require.Equal(t, []string{"set default/p-n1 a:1", "synced"}, w.told())
		w.pass(200 * time.Second)
		require.Empty(t, w.told())
	})
}

func TestAfterARestartTheRunningOneWins(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("a.yaml", pod("p", "a:1"))
		w.put("b.yaml", pod("p", "b:1", uid("running")))
		w.start(func(c *file.Config) { c.Runs = func(u types.UID) bool { return u == "running" } })
		require.Equal(t, []string{"set default/p-n1 b:1", "synced"}, w.told())
	})
}

func TestSameUIDTwice(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("a.yaml", pod("a", "a:1", uid("u")))
		w.put("b.yaml", pod("b", "b:1", uid("u")))
		w.start()
		require.Equal(t, []string{"set default/a-n1 a:1", "synced"}, w.told())
		require.Equal(t, "UID u is already used by /manifests/a.yaml", w.status("b.yaml").Conflict)
	})
}

func TestEditIntoAConflictKeepsTheOldPod(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("a.yaml", pod("a", "a:1"))
		w.put("b.yaml", pod("b", "b:1"))
		w.start()
		w.told()
		w.edit("b.yaml", pod("a", "b:2"))
		w.pass(200 * time.Second)
		require.Empty(t, w.told())
		require.Equal(t, "default/b-n1", w.status("b.yaml").FullName)
		require.NotEmpty(t, w.status("b.yaml").Conflict)
		w.edit("a.yaml", "")
		require.Equal(t, []string{"gone default/a-n1 a:1", "gone default/b-n1 b:1", "set default/a-n1 b:2"}, w.told())
	})
}

func TestTwoFilesMaySwapNames(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("a.yaml", pod("p", "1"))
		w.put("b.yaml", pod("q", "2"))
		w.start()
		w.told()
		w.put("a.yaml", pod("q", "3"))
		w.edit("b.yaml", pod("p", "4"))
		require.Equal(t, []string{
			"gone default/p-n1 1", "gone default/q-n1 2",
			"set default/q-n1 3", "set default/p-n1 4",
		}, w.told())
	})
}

func TestNewNameUnderTheSameUIDFreesTheOldNameFirst(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.put("b.yaml", pod("p", "b:1", uid("u")))
		w.start()
		w.told()
		w.put("a.yaml", pod("p", "a:1"))
		w.edit("b.yaml", pod("q", "b:1", uid("u")))
		require.Equal(t, []string{"gone default/p-n1 b:1", "set default/p-n1 a:1", "set default/q-n1 b:1"}, w.told())
	})
}
