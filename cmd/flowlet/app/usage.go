package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/internal/usage"
	"github.com/flowlet/flowlet/stages/volume"
)

// Usage measures the machine and what pods have on its disks.
type Usage interface {
	// Node measures what is left; an error may come with what was measured,
	// whose time is zero when that is nothing.
	Node(ctx context.Context) (usage.Node, error)
	usage.Disks
}

// machineUsage measures this machine.
type machineUsage struct {
	root    string
	runtime *cri.Client
	dirs    *volume.Dirs
	volumes *volume.Volumes
	cgroups *cgroups
}

var _ Usage = machineUsage{}

// Node implements Usage. What cannot be measured is zero, and not watched.
func (m machineUsage) Node(ctx context.Context) (usage.Node, error) {
	n := usage.Node{At: time.Now()}
	var errs [5]error
	n.Memory, errs[0] = usage.Memory("/proc")
	n.PIDs, errs[1] = usage.PIDs("/proc")
	n.Nodefs, errs[2] = usage.Space(m.root)
	n.Images, n.Layers, errs[3] = m.runtimeDisks(ctx)
	used, limit, err := m.cgroups.usedMemory()
	n.Pods, errs[4] = usage.Amount{Available: limit - used, Capacity: limit}, err
	return n, errors.Join(errs[:]...)
}

// runtimeDisks measures the file systems that the runtime names. It runs on
// this machine, so they are to be found here.
func (m machineUsage) runtimeDisks(ctx context.Context) (images, layers usage.Filesystem, _ error) {
	info, err := m.runtime.ImageFsInfo(ctx)
	if err != nil {
		return images, layers, fmt.Errorf("asking the runtime where images are: %w", err)
	}
	at := func(list []*runtimeapi.FilesystemUsage) (usage.Filesystem, error) {
		if len(list) == 0 || list[0].GetFsId().GetMountpoint() == "" {
			return usage.Filesystem{}, errors.New("the runtime does not say where images are: their file system is not watched")
		}
		return usage.Space(list[0].GetFsId().GetMountpoint())
	}
	if images, err = at(info.GetImageFilesystems()); err != nil {
		return images, layers, err
	}
	if len(info.GetContainerFilesystems()) == 0 { // an older runtime
		return images, images, nil
	}
	layers, err = at(info.GetContainerFilesystems())
	return images, layers, err
}

// Volume implements usage.Disks.
func (m machineUsage) Volume(ctx context.Context, p *v1.Pod, name string) (usage.Disk, error) {
	dir, err := m.volumes.VolumePath(p, name)
	if err != nil {
		return usage.Disk{}, nil //nolint:nilerr // it is not set up, so it takes nothing
	}
	return usage.Walk(ctx, dir)
}

// Logs implements usage.Disks.
func (m machineUsage) Logs(ctx context.Context, p *v1.Pod, container string) (usage.Disk, error) {
	dir, err := m.dirs.LogDir(p)
	if err != nil {
		return usage.Disk{}, err
	}
	return usage.Walk(ctx, filepath.Join(dir, container))
}

// The size of the simulated machine's disk.
const (
	simDisk   = 100 << 30
	simInodes = 10_000_000
	simPIDs   = 32768
)

// SimUsage measures a machine with that much memory on which nothing is but
// what the simulated runtime's scripts say.
type SimUsage struct {
	Sim    *crisim.Runtime
	Memory int64 // bytes
}

var _ Usage = SimUsage{}

// Node implements Usage.
func (s SimUsage) Node(context.Context) (usage.Node, error) {
	all := usage.Filesystem{
		Bytes:  usage.Amount{Available: simDisk - s.Sim.DiskBytes(), Capacity: simDisk},
		Inodes: usage.Amount{Available: simInodes, Capacity: simInodes}, Device: 1,
	}
	return usage.Node{
		At: time.Now(), Memory: usage.Amount{Available: s.Memory - s.Sim.MemoryBytes(), Capacity: s.Memory},
		PIDs: usage.Amount{Available: simPIDs - s.Sim.Processes(), Capacity: simPIDs}, Nodefs: all, Images: all, Layers: all,
	}, nil
}

// Volume implements usage.Disks.
func (s SimUsage) Volume(_ context.Context, p *v1.Pod, name string) (usage.Disk, error) {
	return usage.Disk{Bytes: s.Sim.VolumeBytes(string(p.UID), name)}, nil
}

// Logs implements usage.Disks.
func (s SimUsage) Logs(_ context.Context, p *v1.Pod, container string) (usage.Disk, error) {
	return usage.Disk{Bytes: s.Sim.LogBytes(string(p.UID), container)}, nil
}
