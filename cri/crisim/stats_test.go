package crisim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/cri/crisim"
)

func TestContainersTakeWhatTheirScriptsSay(t *testing.T) {
	const script = `{"web":{"use":[
		{"memory":"10Mi","processes":2},
		{"from":"1m","memory":"1Gi","disk":"5Mi","inodes":7,"logs":"3Ki","volumes":{"work":"2Mi"},"processes":9}]}}`
	simulate(t, crisim.Config{}, func(n node) {
		config := pod("p", script)
		sandbox, id := n.start(config)
		figures := func() (memory, disk, inodes uint64) {
			stats, err := n.client.ListContainerStats(n.ctx, nil)
			require.NoError(n, err)
			require.Len(n, stats, 1)
			require.Equal(n, id, stats[0].GetAttributes().GetId())
			layer := stats[0].GetWritableLayer()
			return stats[0].GetMemory().GetWorkingSetBytes().GetValue(), layer.GetUsedBytes().GetValue(), layer.GetInodesUsed().GetValue()
		}
		memory, disk, _ := figures()
		require.EqualValues(n, 10<<20, memory)
		require.Zero(n, disk)
		before := n.sim.DiskBytes()
		time.Sleep(time.Minute)
		memory, disk, inodes := figures()
		require.EqualValues(n, 1<<30, memory)
		require.EqualValues(n, 5<<20, disk)
		require.EqualValues(n, 7, inodes)
		uid := config.GetMetadata().GetUid()
		require.EqualValues(n, 2<<20, n.sim.VolumeBytes(uid, "work"))
		require.EqualValues(n, 3<<10, n.sim.LogBytes(uid, "web"))
		require.EqualValues(n, 7<<20+3<<10, n.sim.DiskBytes()-before)
		require.EqualValues(n, 1<<30, n.sim.MemoryBytes())
		pods, err := n.client.ListPodSandboxStats(n.ctx, nil)
		require.NoError(n, err)
		require.Equal(n, sandbox, pods[0].GetAttributes().GetId())
		require.EqualValues(n, 9, pods[0].GetLinux().GetProcess().GetProcessCount().GetValue())
		require.NoError(n, n.client.StopContainer(n.ctx, id, 0))
		require.Zero(n, n.sim.MemoryBytes())
		require.EqualValues(n, 7<<20+3<<10, n.sim.DiskBytes()-before, "files stay")
		require.NoError(n, n.client.RemovePodSandbox(n.ctx, sandbox))
		require.EqualValues(n, before, n.sim.DiskBytes())
	})
}
