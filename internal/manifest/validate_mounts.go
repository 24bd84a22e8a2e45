package manifest

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (v *validator) mounts(c *v1.Container, at *field.Path) {
	taken := map[string]bool{}
	for i := range c.VolumeMounts {
		m, at := &c.VolumeMounts[i], at.Index(i)
		v.require(m.Name != "", at.Child("name"), "")
		if v.volumes[m.Name] == nil {
			v.add(field.NotFound(at.Child("name"), m.Name))
		}
		v.require(m.MountPath != "", at.Child("mountPath"), "")
		if taken[m.MountPath] {
			v.invalid(at.Child("mountPath"), m.MountPath, "must be unique")
		}
		taken[m.MountPath] = true
		for _, d := range c.VolumeDevices {
			if d.Name == m.Name {
				v.invalid(at.Child("name"), m.Name, "must not already exist in volumeDevices")
			}
			if d.DevicePath == m.MountPath {
				v.invalid(at.Child("mountPath"), m.MountPath, "must not already exist as a path in volumeDevices")
			}
		}
		v.subPaths(m, at)
		v.mountPropagation(m, c, at.Child("mountPropagation"))
		v.recursiveReadOnly(m, at.Child("recursiveReadOnly"))
		v.bindOptions(m, at.Child("bindMountOptions"))
	}
}

func (v *validator) subPaths(m *v1.VolumeMount, at *field.Path) {
	v.descending(m.SubPath, at.Child("subPath"))
	if m.SubPathExpr != "" && m.SubPath != "" {
		v.invalid(at.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive")
	}
	v.descending(m.SubPathExpr, at.Child("subPathExpr"))
}

func (v *validator) mountPropagation(m *v1.VolumeMount, c *v1.Container, at *field.Path) {
	if m.MountPropagation == nil {
		return
	}
	modes := []v1.MountPropagationMode{v1.MountPropagationBidirectional, v1.MountPropagationHostToContainer, v1.MountPropagationNone}
	if !slices.Contains(modes, *m.MountPropagation) {
		v.add(field.NotSupported(at, *m.MountPropagation, modes))
	}
	sc := c.SecurityContext
	privileged := sc != nil && sc.Privileged != nil && *sc.Privileged
	v.forbid(*m.MountPropagation == v1.MountPropagationBidirectional && !privileged, at,
		"Bidirectional mount propagation is available only to privileged containers")
}

func (v *validator) recursiveReadOnly(m *v1.VolumeMount, at *field.Path) {
	if m.RecursiveReadOnly == nil || *m.RecursiveReadOnly == v1.RecursiveReadOnlyDisabled {
		return
	}
	modes := []v1.RecursiveReadOnlyMode{v1.RecursiveReadOnlyDisabled, v1.RecursiveReadOnlyIfPossible, v1.RecursiveReadOnlyEnabled}
	if !slices.Contains(modes, *m.RecursiveReadOnly) {
		v.add(field.NotSupported(at, *m.RecursiveReadOnly, modes))
		return
	}
	v.forbid(!m.ReadOnly, at, "may only be specified when readOnly is true")
	v.forbid(m.MountPropagation != nil && *m.MountPropagation != v1.MountPropagationNone, at,
		"may only be specified when mountPropagation is None or not specified")
}

func (v *validator) bindOptions(m *v1.VolumeMount, at *field.Path) {
	options := []string{string(v1.BindMountOptionNoDev), string(v1.BindMountOptionNoExec), string(v1.BindMountOptionNoSUID)}
	seen := map[string]bool{}
	for i, option := range m.BindMountOptions {
		if !slices.Contains(options, option) {
			v.add(field.NotSupported(at.Index(i), option, options))
		}
		v.unique(at.Index(i), option, seen)
	}
	if vol := v.volumes[m.Name]; len(m.BindMountOptions) > 0 && vol != nil && vol.Image != nil {
		v.invalid(at, m.BindMountOptions, "bindMountOptions may not be used with image volumes")
	}
}

// devices checks block devices. They come from claims, which a static pod
// cannot have, so little of them is left to check.
func (v *validator) devices(c *v1.Container, at *field.Path) {
	names, paths := map[string]bool{}, map[string]bool{}
	for i, d := range c.VolumeDevices {
		at := at.Index(i)
		v.require(d.Name != "", at.Child("name"), "")
		switch vol := v.volumes[d.Name]; {
		case vol == nil:
			v.add(field.NotFound(at.Child("name"), d.Name))
		case vol.PersistentVolumeClaim == nil && vol.Ephemeral == nil:
			v.invalid(at.Child("name"), d.Name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode")
		}
		if names[d.Name] {
			v.invalid(at.Child("name"), d.Name, "must be unique")
		}
		v.require(d.DevicePath != "", at.Child("devicePath"), "")
		if paths[d.DevicePath] {
			v.invalid(at.Child("devicePath"), d.DevicePath, "must be unique")
		}
		v.noBacksteps(d.DevicePath, at.Child("devicePath"))
		names[d.Name], paths[d.DevicePath] = true, true
		for _, m := range c.VolumeMounts {
			if m.Name == d.Name {
				v.invalid(at.Child("name"), d.Name, "must not already exist in volumeMounts")
			}
			if m.MountPath == d.DevicePath {
				v.invalid(at.Child("devicePath"), d.DevicePath, "must not already exist as a path in volumeMounts")
			}
		}
	}
}
