package usage_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/usage"
)

type figures struct{ stats []*runtimeapi.ContainerStats }

func (f figures) ListContainerStats(context.Context, *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	if f.stats == nil {
		return nil, errors.New("away")
	}
	return f.stats, nil
}

func (f figures) ListPodSandboxStats(context.Context, *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	one := func(uid string, n uint64) *runtimeapi.PodSandboxStats {
		return &runtimeapi.PodSandboxStats{
			Attributes: &runtimeapi.PodSandboxAttributes{Metadata: &runtimeapi.PodSandboxMetadata{Uid: uid}},
			Linux:      &runtimeapi.LinuxPodSandboxStats{Process: &runtimeapi.ProcessUsage{ProcessCount: &runtimeapi.UInt64Value{Value: n}}},
		}
	}
	return []*runtimeapi.PodSandboxStats{one("u1", 3), one("u2", 5)}, nil
}

func stat(uid, name string, attempt uint32, memory, layer uint64) *runtimeapi.ContainerStats {
	n := func(v uint64) *runtimeapi.UInt64Value { return &runtimeapi.UInt64Value{Value: v} }
	return &runtimeapi.ContainerStats{
		Attributes: &runtimeapi.ContainerAttributes{
			Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: attempt}, Labels: map[string]string{pod.LabelPodUID: uid},
		},
		Memory:        &runtimeapi.MemoryUsage{WorkingSetBytes: n(memory)},
		WritableLayer: &runtimeapi.FilesystemUsage{UsedBytes: n(layer), InodesUsed: n(1)},
	}
}

// slowDisks takes a while for each tree.
type slowDisks struct {
	takes time.Duration
	walks int
	err   error
}

func (d *slowDisks) Volume(_ context.Context, _ *v1.Pod, name string) (usage.Disk, error) {
	d.walks++
	time.Sleep(d.takes)
	return usage.Disk{Bytes: int64(len(name)) * 100, Inodes: 2}, d.err
}

func (d *slowDisks) Logs(context.Context, *v1.Pod, string) (usage.Disk, error) {
	return usage.Disk{Bytes: 7, Inodes: 1}, nil
}

func measuredPod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", UID: "u1"},
		Spec: v1.PodSpec{
			Containers: []v1.Container{{Name: "web"}, {Name: "gone"}},
			Volumes: []v1.Volume{
				{Name: "work", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
				{Name: "shm", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}}},
				{Name: "host", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/"}}},
			},
		},
	}
}

func TestMeterPutsContainersLogsAndVolumesTogether(t *testing.T) {
	m := &usage.Meter{Runtime: figures{[]*runtimeapi.ContainerStats{
		stat("u1", "web", 0, 1, 1), stat("u1", "web", 2, 10, 20), stat("u1", "web", 1, 5, 5), stat("other", "web", 0, 99, 99),
	}}, Disks: &slowDisks{}, Oldest: time.Minute}
	got, err := m.Pods(context.Background(), []*v1.Pod{measuredPod()})
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, &usage.Pod{
		Containers: []usage.Container{
			{Name: "gone", Logs: usage.Disk{Bytes: 7, Inodes: 1}},
			{Name: "web", Memory: 10, Writable: usage.Disk{Bytes: 20, Inodes: 1}, Logs: usage.Disk{Bytes: 7, Inodes: 1}},
		},
		Volumes: map[string]usage.Disk{"work": {Bytes: 400, Inodes: 2}},
	}, got["u1"], "the newest attempt counts, and no volume in memory or of the host")
	counts, err := m.Processes(context.Background())
	require.NoError(t, err)
	require.EqualValues(t, 5, counts["u2"])
}

func TestTreesThatTakeLongAreReadLessOften(t *testing.T) {
	for name, tc := range map[string]struct {
		takes, oldest time.Duration
		walks         int // within ten minutes of a look every 10 s
	}{
		"quick":    {time.Millisecond, time.Minute, 60},
		"slow":     {300 * time.Millisecond, time.Minute, 15},
		"slowest":  {5 * time.Second, time.Minute, 8},
		"not once": {0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disks := &slowDisks{takes: tc.takes}
				m := &usage.Meter{Runtime: figures{[]*runtimeapi.ContainerStats{}}, Disks: disks, Oldest: tc.oldest}
				for range 60 {
					began := time.Now()
					_, err := m.Pods(context.Background(), []*v1.Pod{measuredPod()})
					require.NoError(t, err)
					time.Sleep(10*time.Second - time.Since(began))
				}
				require.InDelta(t, tc.walks, disks.walks, 1)
			})
		})
	}
}

func TestTreesAreNotReadAgainBecauseOthersWereAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disks := &slowDisks{takes: time.Second}
		m := &usage.Meter{Runtime: figures{[]*runtimeapi.ContainerStats{}}, Disks: disks, Oldest: time.Minute}
		other := measuredPod()
		other.UID = "u2"
		for range 5 {
			for _, pods := range [][]*v1.Pod{{measuredPod(), other}, {other}} {
				_, err := m.Pods(context.Background(), pods)
				require.NoError(t, err)
			}
		}
		require.Equal(t, 2, disks.walks)
	})
}

func TestMeterReturnsWhatItCouldMeasure(t *testing.T) {
	m := &usage.Meter{Runtime: figures{[]*runtimeapi.ContainerStats{}}, Disks: &slowDisks{err: errors.New("half")}, Oldest: time.Minute}
	got, err := m.Pods(context.Background(), []*v1.Pod{measuredPod()})
	require.ErrorContains(t, err, "pod n/p: half")
	require.EqualValues(t, 400, got["u1"].Volumes["work"].Bytes)
	m.Runtime = figures{}
	got, err = m.Pods(context.Background(), []*v1.Pod{measuredPod()})
	require.ErrorContains(t, err, "asking the runtime what containers take: away")
	require.Nil(t, got)
}
