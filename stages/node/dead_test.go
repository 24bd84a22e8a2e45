package node_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/node"
)

// ended makes a pod with containers c-N that have ended, the newest first, each
// made that many minutes ago.
func ended(uid string, minutes ...int) *pod.State {
	s := &pod.State{Identity: pod.Identity{UID: types.UID(uid)}}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, m := range minutes {
		s.Containers = append(s.Containers, pod.Container{
			ID: uid + string(rune('a'+i)), Name: "c", State: pod.Exited, Detailed: true, CreatedAt: at.Add(-time.Duration(m) * time.Minute),
		})
	}
	return s
}

func dropped(most int, pods ...*pod.State) map[pod.Key][]string {
	out := map[pod.Key][]string{}
	d := node.Dead{
		Pods: func() []*pod.State { return pods },
		Drop: func(k pod.Key, ids []string) { out[k] = ids },
	}
	d.Bound(most)
	return out
}

func TestDeadContainersOfTheNodeAreBounded(t *testing.T) {
	none := map[pod.Key][]string{}
	require.Equal(t, none, dropped(0))
	require.Equal(t, none, dropped(5, ended("u", 1, 2, 3, 4), ended("v", 9)), "they are no more than that")
	require.Equal(t, map[pod.Key][]string{"u": {"uc", "ud"}}, dropped(4, ended("u", 1, 2, 3, 4), ended("v", 9)), "each has the same share")
	require.Equal(t, map[pod.Key][]string{"v": {"va"}}, dropped(2, ended("u", 1), ended("v", 9), ended("w", 5)), "the oldest goes")
	require.Equal(t, map[pod.Key][]string{"u": {"ua"}, "v": {"va"}}, dropped(0, ended("u", 1), ended("v", 9)))

	running := ended("u", 1, 2)
	running.Containers[0].State = pod.Running
	running.Containers[1].Unkept = true
	require.Equal(t, none, dropped(0, running), "neither what runs nor what is on its way")
}

func TestAllDeadContainersAreCountedOnce(t *testing.T) {
	s := ended("u", 1, 2)
	d := node.Dead{
		Pods: func() []*pod.State { return []*pod.State{s} },
		Drop: func(_ pod.Key, ids []string) { s, _ = pod.Fold(s, pod.Unkept{IDs: ids}) },
	}
	require.Equal(t, 2, d.All())
	require.Zero(t, d.All())
}
