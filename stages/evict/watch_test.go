package evict_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/usage"
	"github.com/flowlet/flowlet/stages/evict"
)

const mi = 1 << 20

// memory is a node with so much memory left, of 1000 Mi.
func memory(at time.Time, left int64) *usage.Node {
	return &usage.Node{At: at, Memory: usage.Amount{Available: left * mi, Capacity: 1000 * mi}}
}

func watch(t *testing.T, s evict.Settings) *evict.Watch {
	t.Helper()
	thresholds, err := s.Thresholds()
	require.NoError(t, err)
	return &evict.Watch{Thresholds: thresholds, Transition: 5 * time.Minute}
}

func TestHardThresholdIsDueAtOnce(t *testing.T) {
	w, now := watch(t, evict.Settings{Hard: map[string]string{"memory.available": "100Mi"}}), time.Unix(1000, 0)
	require.Empty(t, w.Look(now, memory(now, 100)), "exactly as much as there is to be")
	require.Empty(t, w.Conditions())
	now = now.Add(10 * time.Second)
	due := w.Look(now, memory(now, 99))
	require.Len(t, due, 1)
	require.EqualValues(t, 99*mi, due[0].Seen.Available)
	require.Equal(t, []evict.Condition{{Type: v1.NodeMemoryPressure, Since: now}}, w.Conditions())
}

func TestSoftThresholdIsDueAfterItsGrace(t *testing.T) {
	w := watch(t, evict.Settings{Soft: map[string]string{"memory.available": "10%"}, SoftGrace: map[string]string{"memory.available": "30s"}})
	start := time.Unix(1000, 0)
	look := func(after time.Duration, left int64) int {
		return len(w.Look(start.Add(after), memory(start.Add(after), left)))
	}
	require.Zero(t, look(0, 90))
	require.NotEmpty(t, w.Conditions(), "the node is under pressure at once")
	require.Zero(t, look(20*time.Second, 90))
	require.Equal(t, 1, look(30*time.Second, 90))
	require.Zero(t, look(40*time.Second, 100), "it is over")
	require.Zero(t, look(50*time.Second, 90), "and its grace begins anew")
}

func TestThresholdStaysMetUntilEnoughIsReclaimed(t *testing.T) {
	w, now := watch(t, evict.Settings{
		Hard: map[string]string{"memory.available": "100Mi"}, MinimumReclaim: map[string]string{"memory.available": "50Mi"},
	}), time.Unix(1000, 0)
	for i, tc := range []struct {
		left int64
		due  int
	}{{120, 0}, {90, 1}, {120, 1}, {149, 1}, {150, 0}, {120, 0}} {
		at := now.Add(time.Duration(i) * 10 * time.Second)
		require.Len(t, w.Look(at, memory(at, tc.left)), tc.due, "look %d", i)
	}
}

func TestConditionStaysForTheTransitionPeriod(t *testing.T) {
	w, start := watch(t, evict.Settings{Hard: map[string]string{"memory.available": "100Mi"}}), time.Unix(1000, 0)
	w.Look(start, memory(start, 10))
	for _, after := range []time.Duration{time.Minute, 5*time.Minute - time.Second} {
		require.Empty(t, w.Look(start.Add(after), memory(start.Add(after), 500)))
		require.Equal(t, []evict.Condition{{Type: v1.NodeMemoryPressure, Since: start}}, w.Conditions(), "%s later", after)
	}
	end := start.Add(5 * time.Minute)
	w.Look(end, memory(end, 500))
	require.Empty(t, w.Conditions())
}

func TestAMeasurementIsActedOnOnce(t *testing.T) {
	w, now := watch(t, evict.Settings{Hard: map[string]string{"memory.available": "100Mi"}}), time.Unix(1000, 0)
	sample := memory(now, 10)
	require.Len(t, w.Look(now, sample), 1)
	require.Empty(t, w.Look(now.Add(10*time.Second), sample), "nobody knows whether it is still so")
}

func TestMemoryComesBeforeOtherSignals(t *testing.T) {
	w, now := watch(t, evict.Settings{Hard: map[string]string{"imagefs.available": "10%", "memory.available": "100Mi", "nodefs.inodesFree": "5%"}}), time.Unix(1000, 0)
	n := memory(now, 10)
	n.Images.Bytes = usage.Amount{Available: 1, Capacity: 100}
	n.Nodefs.Inodes = usage.Amount{Available: 1, Capacity: 100}
	var order []evict.Signal
	for _, d := range w.Look(now, n) {
		order = append(order, d.Signal)
	}
	require.Equal(t, []evict.Signal{"memory.available", "imagefs.available", "nodefs.inodesFree"}, order)
	require.Len(t, w.Conditions(), 2)
}

func TestWhatTheNodeDoesNotHaveIsNotWatched(t *testing.T) {
	w, now := watch(t, evict.Settings{Hard: map[string]string{"nodefs.inodesFree": "5%"}}), time.Unix(1000, 0)
	require.Empty(t, w.Look(now, memory(now, 10)), "the file system counts no inodes")
}
