package crifact

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/podutils"
)

// FieldPath returns the field path of events about the container called name
// of p, for example spec.containers{web}; empty when p has none.
func FieldPath(p *v1.Pod, name string) string {
	return fieldPath(p, func(c *v1.Container) bool { return c.Name == name })
}

// FieldPathOfImage returns the field path of events about an image: that of
// the first container of p whose image is ref, or that mounts it as a volume,
// empty when there is none.
func FieldPathOfImage(p *v1.Pod, ref string) string {
	if path := fieldPath(p, func(c *v1.Container) bool { return c.Image == ref }); path != "" {
		return path
	}
	return fieldPath(p, func(c *v1.Container) bool {
		return slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool {
			mounted := func(m v1.VolumeMount) bool { return m.Name == v.Name }
			return v.Image != nil && v.Image.Reference == ref && slices.ContainsFunc(c.VolumeMounts, mounted)
		})
	})
}

func fieldPath(p *v1.Pod, is func(*v1.Container) bool) (path string) {
	fields := map[podutils.ContainerType]string{
		podutils.InitContainers:      "spec.initContainers",
		podutils.Containers:          "spec.containers",
		podutils.EphemeralContainers: "spec.ephemeralContainers",
	}
	podutils.VisitContainers(&p.Spec, podutils.AllContainers, func(c *v1.Container, t podutils.ContainerType) bool {
		if is(c) {
			path = fields[t] + "{" + c.Name + "}"
		}
		return path == ""
	})
	return path
}
