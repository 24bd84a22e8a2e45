package scenarios_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	chores "github.com/flowlet/flowlet/stages/node"
)

// leftovers are the directories and cgroups of pods on a machine.
type leftovers struct {
	mu      sync.Mutex
	dirs    []types.UID
	cgroups []types.UID
	busy    types.UID // cannot be unmounted
	hangs   types.UID // unmounting it does not return
	end     chan struct{}
}

func (l *leftovers) PodUIDs() ([]types.UID, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.dirs), nil
}

func (l *leftovers) Unmount(_ context.Context, s *pod.State) error {
	if s.UID() == l.hangs {
		<-l.end
	}
	if s.UID() == l.busy {
		return errors.New("target is busy")
	}
	return nil
}

func (l *leftovers) Remove(_ context.Context, s *pod.State) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirs = slices.DeleteFunc(l.dirs, func(uid types.UID) bool { return uid == s.UID() })
	return nil
}

func (l *leftovers) left() (dirs, cgroups []types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.dirs), slices.Clone(l.cgroups)
}

type cgroupsLeft struct{ *leftovers }

func (l cgroupsLeft) PodUIDs(context.Context) ([]types.UID, error) {
	_, c := l.left()
	return c, nil
}

func (l cgroupsLeft) Remove(_ context.Context, s *pod.State) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cgroups = slices.DeleteFunc(l.cgroups, func(uid types.UID) bool { return uid == s.UID() })
	return nil
}

func TestWhatIsLeftOfPodsThatNobodyKnows(t *testing.T) {
	l := &leftovers{busy: "busy", hangs: "hangs"}
	scenario(t, setup{leftovers: l, idle: true}, func(n *node) {
		l.end = make(chan struct{})
		defer func() { close(l.end) }()
		n.write("web", manifest("web", uid("uid-web")))
		n.foreign("api", "theirs")
		all := []types.UID{"busy", "hangs", "orphan", "uid-theirs", "uid-web"}
		l.dirs, l.cgroups = slices.Clone(all), slices.Clone(all)
		n.sim.Down()
		n.start()
		n.pass(10 * time.Minute)
		dirs, cgroups := l.left()
		require.Equal(n, all, dirs, "the runtime has not told whom it has")
		require.Equal(n, all, cgroups)
		n.sim.Up()
		n.until(2*time.Minute, "the orphan is gone", func() bool { dirs, _ := l.left(); return len(dirs) < len(all) })
		n.pass(5 * time.Minute)
		dirs, cgroups = l.left()
		require.Equal(n, []types.UID{"busy", "hangs", "uid-theirs", "uid-web"}, dirs, "what runs of an unconfigured source is not ours to end")
		require.Equal(n, []types.UID{"uid-theirs", "uid-web"}, cgroups)
		v, err := n.agent.Store.Find("node/orphans")
		require.NoError(n, err)
		require.ErrorContains(n, v.Memo[dag.ID{Kind: chores.KindOrphanDirs, Of: "busy"}].Err, "target is busy")
		require.Equal(n, dag.Lost, v.Memo[dag.ID{Kind: chores.KindOrphanDirs, Of: "hangs"}].State, "it holds up nobody")
		require.Equal(n, dag.Done, v.Memo[dag.ID{Kind: chores.KindOrphanLook}].State)
		require.True(n, n.runs("web", "web"))
	})
}

// A pod that comes while what an earlier life left is being removed begins with
// nothing of it.
func TestPodThatComesWhileItsOrphanIsRemoved(t *testing.T) {
	l := &leftovers{hangs: "uid-web", dirs: []types.UID{"uid-web"}}
	scenario(t, setup{leftovers: l, idle: true}, func(n *node) {
		l.end = make(chan struct{})
		n.start()
		n.pass(30 * time.Second)
		n.write("web", manifest("web", uid("uid-web")))
		n.pass(30 * time.Second)
		require.False(n, n.runs("web", "web"), "its directories are being removed")
		close(l.end)
		n.untilRuns(time.Minute, "web", "web")
	})
}
