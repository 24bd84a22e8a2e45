package app

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/container"
)

// NoCgroups, NoDirs and NoVolumes stand for the machine's parts where nothing
// of it is to be touched: with the simulated runtime. Their methods do nothing
// and may be called concurrently.
type (
	NoCgroups struct{}
	NoDirs    struct{}
	NoVolumes struct{}
)

var (
	_ Cgroups = NoCgroups{}
	_ Dirs    = NoDirs{}
	_ Volumes = NoVolumes{}

	_ container.SubPaths = NoVolumes{}
)

// Ensure implements graph.Cgroups.
func (NoCgroups) Ensure(context.Context, *v1.Pod) error { return nil }

// Remove implements graph.Cgroups.
func (NoCgroups) Remove(context.Context, *pod.State) error { return nil }

// Raise implements resize.Cgroups.
func (NoCgroups) Raise(context.Context, *v1.Pod, *v1.Pod) error { return nil }

// Memory implements resize.Cgroups.
func (NoCgroups) Memory(context.Context, *v1.Pod) (limit, used int64, err error) { return 0, 0, nil }

// ParentFor implements Cgroups.
func (NoCgroups) ParentFor(*v1.Pod) string { return "" }

// Ensure implements graph.Dirs.
func (NoDirs) Ensure(context.Context, *v1.Pod) error { return nil }

// Remove implements graph.Dirs.
func (NoDirs) Remove(context.Context, *pod.State) error { return nil }

// HostsFile implements container.Files.
func (NoDirs) HostsFile(uid types.UID) string { return "/nonexistent/" + string(uid) + "/etc-hosts" }

// WriteHosts implements container.Files.
func (NoDirs) WriteHosts(types.UID, container.Hosts) error { return nil }

// NewTerminationLog implements container.Files.
func (NoDirs) NewTerminationLog(uid types.UID, name string) (string, error) {
	return "/nonexistent/" + string(uid) + "/" + name, nil
}

// Ensure implements graph.Volumes.
func (NoVolumes) Ensure(context.Context, *v1.Pod, *v1.Volume) error { return nil }

// Unmount implements graph.Volumes.
func (NoVolumes) Unmount(context.Context, *pod.State) error { return nil }

// VolumePath implements container.Volumes.
func (NoVolumes) VolumePath(p *v1.Pod, name string) (string, error) {
	return "/nonexistent/" + string(p.UID) + "/" + name, nil
}

// SubPath implements container.SubPaths.
func (v NoVolumes) SubPath(p *v1.Pod, c *v1.Container, index int, _ string) (string, error) {
	path, err := v.VolumePath(p, c.VolumeMounts[index].Name)
	return path + "/part", err
}
