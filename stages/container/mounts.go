package container

import (
	"errors"
	"fmt"
	"path"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/crifact"
)

const hostsPath = "/etc/hosts"

// mounts are the volumes in the order of the spec, the pod's hosts file and the
// termination log.
func (c *Containers) mounts(st *Start, env *environment) ([]*runtimeapi.Mount, error) {
	if len(st.Container.VolumeDevices) > 0 {
		return nil, fmt.Errorf("volumeDevices: volume %q cannot be a block device: those come from persistent volume claims, and this node runs without an API server", st.Container.VolumeDevices[0].Name)
	}
	var out []*runtimeapi.Mount
	for i := range st.Container.VolumeMounts {
		m, err := c.volumeMount(st, i, env)
		if err != nil {
			return nil, fmt.Errorf("volumeMounts[%d] (volume %q): %w", i, st.Container.VolumeMounts[i].Name, err)
		}
		out = append(out, m)
	}
	hosts, err := c.hosts(st)
	if err != nil {
		return nil, err
	}
	out = append(append(out, hosts...), c.terminationLog(st)...)
	if users := st.users(); users != nil {
		for _, m := range out {
			m.UidMappings, m.GidMappings = users.GetUids(), users.GetGids()
		}
	}
	return out, nil
}

func (c *Containers) volumeMount(st *Start, index int, env *environment) (*runtimeapi.Mount, error) {
	vm := &st.Container.VolumeMounts[index]
	v := volumeOf(st.State.Pod(), vm.Name)
	if v == nil {
		return nil, errors.New("the pod's spec has no such volume")
	}
	m := &runtimeapi.Mount{ContainerPath: path.Join("/", vm.MountPath), Readonly: vm.ReadOnly || alwaysReadOnly(v), SelinuxRelabel: relabelled(v)}
	var err error
	if m.RecursiveReadOnly, err = c.recursive(st.State.Pod(), vm); err != nil {
		return nil, err
	}
	if m.Propagation, err = propagationOf(vm.MountPropagation); err != nil {
		return nil, err
	}
	part, err := subPath(vm, env)
	switch {
	case err != nil:
		return nil, err
	case v.Image != nil:
		m.ImageSubPath = part
		m.Image, err = c.imageOf(st, v.Image.Reference)
	case part != "":
		m.HostPath, err = c.part(st, index, part)
	default:
		m.HostPath, err = c.Volumes.VolumePath(st.State.Pod(), vm.Name)
	}
	return m, err
}

func volumeOf(p *v1.Pod, name string) *v1.Volume {
	for i := range p.Spec.Volumes {
		if p.Spec.Volumes[i].Name == name {
			return &p.Spec.Volumes[i]
		}
	}
	return nil
}

// alwaysReadOnly reports whether no container may write into the volume.
func alwaysReadOnly(v *v1.Volume) bool { return ofFiles(v) || v.Image != nil }

// relabelled reports whether the runtime gives the volume the container's
// SELinux label: one that belongs to the pod alone.
func relabelled(v *v1.Volume) bool { return ofFiles(v) || v.EmptyDir != nil }

// ofFiles reports whether the agent writes the volume.
func ofFiles(v *v1.Volume) bool {
	return v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil || v.Projected != nil
}

// recursive reports whether what is mounted below a read-only volume is to be
// read-only too.
func (c *Containers) recursive(p *v1.Pod, vm *v1.VolumeMount) (bool, error) {
	if vm.RecursiveReadOnly == nil {
		return false, nil
	}
	switch mode := *vm.RecursiveReadOnly; mode {
	case v1.RecursiveReadOnlyDisabled:
		return false, nil
	case v1.RecursiveReadOnlyIfPossible:
		return vm.ReadOnly && c.handler(p).RecursiveReadOnly, nil
	case v1.RecursiveReadOnlyEnabled:
		switch {
		case !vm.ReadOnly:
			return false, fmt.Errorf("recursiveReadOnly %s needs readOnly: true", mode)
		case vm.MountPropagation != nil && *vm.MountPropagation != v1.MountPropagationNone:
			return false, fmt.Errorf("recursiveReadOnly %s does not go with mountPropagation %s", mode, *vm.MountPropagation)
		case !c.handler(p).RecursiveReadOnly:
			return false, fmt.Errorf("recursiveReadOnly %s: the container runtime does not support it; IfPossible does without", mode)
		}
		return true, nil
	default:
		return false, fmt.Errorf("recursiveReadOnly: unknown mode %q", mode)
	}
}

func propagationOf(mode *v1.MountPropagationMode) (runtimeapi.MountPropagation, error) {
	if mode == nil {
		return runtimeapi.MountPropagation_PROPAGATION_PRIVATE, nil
	}
	switch *mode {
	case v1.MountPropagationNone:
		return runtimeapi.MountPropagation_PROPAGATION_PRIVATE, nil
	case v1.MountPropagationHostToContainer:
		return runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER, nil
	case v1.MountPropagationBidirectional:
		return runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL, nil
	default:
		return 0, fmt.Errorf("mountPropagation: unknown mode %q", *mode)
	}
}

// hosts writes the pod's hosts file and mounts it, unless a volume is mounted
// there or there is no address to write.
func (c *Containers) hosts(st *Start) ([]*runtimeapi.Mount, error) {
	p := st.State.Pod()
	ips := c.podIPs(st)
	if !p.Spec.HostNetwork && len(ips) == 0 {
		return nil, nil
	}
	for i := range st.Container.VolumeMounts {
		if path.Join("/", st.Container.VolumeMounts[i].MountPath) == hostsPath {
			return nil, nil
		}
	}
	host, domain, err := crifact.Hostname(p, c.Settings.ClusterDomain)
	if err != nil {
		return nil, err
	}
	h := Hosts{HostNetwork: p.Spec.HostNetwork, Hostname: host, Domain: domain, IPs: ips, Aliases: p.Spec.HostAliases}
	if err := c.Files.WriteHosts(p.UID, h); err != nil {
		return nil, err
	}
	return []*runtimeapi.Mount{{ContainerPath: hostsPath, HostPath: c.Files.HostsFile(p.UID), SelinuxRelabel: true}}, nil
}

// terminationLog mounts a new file for the container's last words. A container
// can do without.
func (c *Containers) terminationLog(st *Start) []*runtimeapi.Mount {
	if st.Container.TerminationMessagePath == "" {
		return nil
	}
	p := st.State.Pod()
	file, err := c.Files.NewTerminationLog(p.UID, st.Container.Name)
	if err != nil {
		c.Log.Warn("container starts without a termination log",
			"pod", st.State.FullName(), "uid", p.UID, "container", st.Container.Name, "error", err)
		return nil
	}
	return []*runtimeapi.Mount{{ContainerPath: st.Container.TerminationMessagePath, HostPath: file, SelinuxRelabel: true}}
}
