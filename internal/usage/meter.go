package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

// Runtime is asked for what containers take. *cri.Client fits.
type Runtime interface {
	// ListContainerStats returns the figures of the containers that match; nil
	// means all.
	ListContainerStats(ctx context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error)
	ListPodSandboxStats(ctx context.Context, filter *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error)
}

// Disks measures what a pod has on disk besides the layers of its containers.
// What is not there takes nothing; an error comes with a lower bound.
type Disks interface {
	// Volume measures a volume of type emptyDir that is not in memory.
	Volume(ctx context.Context, p *v1.Pod, name string) (Disk, error)
	Logs(ctx context.Context, p *v1.Pod, container string) (Disk, error)
}

// Meter measures pods. Its methods may not be called concurrently.
type Meter struct {
	Runtime Runtime
	Disks   Disks
	// Oldest is how old a measurement of files may be (volumeStatsAggPeriod);
	// 0 and less: files are not measured.
	Oldest time.Duration

	files map[types.UID]files
}

// files is what a pod has on disk, as it was measured.
type files struct {
	volumes map[string]Disk
	logs    map[string]Disk
	until   time.Time // it is good enough
}

// share is how much of the time may go into reading one pod's trees: where
// that takes a while it is done less often, up to Meter.Oldest.
const share = 100

// Pods measures these pods. A pod of which the runtime has no figures is in
// the result with what is known; an error is about files that were measured in
// part only, or (with a nil map) about the runtime.
func (m *Meter) Pods(ctx context.Context, pods []*v1.Pod) (map[types.UID]*Pod, error) {
	stats, err := m.Runtime.ListContainerStats(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the runtime what containers take: %w", err)
	}
	byPod := containers(stats)
	out := make(map[types.UID]*Pod, len(pods))
	m.expire(time.Now())
	var errs []error
	for _, p := range pods {
		f, err := m.measure(ctx, p)
		if err != nil {
			errs = append(errs, fmt.Errorf("pod %s/%s: %w", p.Namespace, p.Name, err))
		}
		m.files[p.UID] = f
		out[p.UID] = join(byPod[p.UID], f)
	}
	return out, errors.Join(errs...)
}

// expire forgets what is too old. The rest stays, whichever pods are asked for.
func (m *Meter) expire(now time.Time) {
	if m.files == nil {
		m.files = map[types.UID]files{}
	}
	maps.DeleteFunc(m.files, func(_ types.UID, f files) bool { return !now.Before(f.until) })
}

// join puts the logs of all containers beside the runtime's figures.
func join(running map[string]Container, f files) *Pod {
	u := &Pod{Volumes: f.volumes}
	for name, logs := range f.logs {
		c := running[name]
		c.Name, c.Logs = name, logs
		u.Containers = append(u.Containers, c)
	}
	for name, c := range running {
		if _, ok := f.logs[name]; !ok {
			u.Containers = append(u.Containers, c)
		}
	}
	slices.SortFunc(u.Containers, func(a, b Container) int { return cmp.Compare(a.Name, b.Name) })
	return u
}

func (m *Meter) measure(ctx context.Context, p *v1.Pod) (files, error) {
	if m.Oldest <= 0 {
		return files{}, nil
	}
	began := time.Now()
	if f, ok := m.files[p.UID]; ok && began.Before(f.until) {
		return f, nil
	}
	f := files{volumes: map[string]Disk{}, logs: map[string]Disk{}}
	var errs []error
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if v.EmptyDir == nil || v.EmptyDir.Medium != v1.StorageMediumDefault {
			continue
		}
		d, err := m.Disks.Volume(ctx, p, v.Name)
		f.volumes[v.Name] = d
		errs = append(errs, err)
	}
	for _, list := range [2][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			d, err := m.Disks.Logs(ctx, p, list[i].Name)
			f.logs[list[i].Name] = d
			errs = append(errs, err)
		}
	}
	ended := time.Now()
	f.until = ended.Add(min(m.Oldest, share*ended.Sub(began)))
	return f, errors.Join(errs...)
}

// containers sorts the runtime's figures by pod and container; of several
// attempts the newest counts.
func containers(stats []*runtimeapi.ContainerStats) map[types.UID]map[string]Container {
	out := map[types.UID]map[string]Container{}
	attempts := map[string]uint32{}
	for _, s := range stats {
		uid, name := types.UID(s.GetAttributes().GetLabels()[pod.LabelPodUID]), s.GetAttributes().GetMetadata().GetName()
		attempt, key := s.GetAttributes().GetMetadata().GetAttempt(), string(uid)+"/"+name
		if uid == "" || attempt < attempts[key] {
			continue
		}
		attempts[key] = attempt
		if out[uid] == nil {
			out[uid] = map[string]Container{}
		}
		out[uid][name] = Container{
			Name: name, Memory: int64(s.GetMemory().GetWorkingSetBytes().GetValue()), //nolint:gosec // bytes of this machine
			Writable: Disk{
				Bytes:  int64(s.GetWritableLayer().GetUsedBytes().GetValue()),  //nolint:gosec // as above
				Inodes: int64(s.GetWritableLayer().GetInodesUsed().GetValue()), //nolint:gosec // as above
			},
		}
	}
	return out
}

// Processes asks the runtime for the number of processes of every pod.
func (m *Meter) Processes(ctx context.Context) (map[types.UID]int64, error) {
	stats, err := m.Runtime.ListPodSandboxStats(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("asking the runtime for the processes of pods: %w", err)
	}
	out := map[types.UID]int64{}
	for _, s := range stats {
		out[types.UID(s.GetAttributes().GetMetadata().GetUid())] += int64(s.GetLinux().GetProcess().GetProcessCount().GetValue()) //nolint:gosec // processes
	}
	return out, nil
}
