package evict

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/flowlet/flowlet/internal/usage"
)

// Limited reports whether anything limits what the pod may have on disk.
func Limited(p *v1.Pod) bool {
	for i := range p.Spec.Volumes {
		if sizeLimit(&p.Spec.Volumes[i]) {
			return true
		}
	}
	limits := resource.PodLimits(p, resource.PodResourcesOptions{})
	_, limited := limits[v1.ResourceEphemeralStorage]
	return limited
}

func sizeLimit(v *v1.Volume) bool {
	e := v.EmptyDir
	return e != nil && e.Medium == v1.StorageMediumDefault && e.SizeLimit != nil && e.SizeLimit.Sign() > 0
}

// Over returns the message of the first limit of local storage that the pod
// is over, or "". layers says whether what containers write over their images
// counts: not when it is on another file system than volumes and logs.
func Over(p *v1.Pod, u *usage.Pod, layers bool) string {
	for _, check := range []func(*v1.Pod, *usage.Pod, bool) string{overVolume, overPod, overContainer} {
		if message := check(p, u, layers); message != "" {
			return message
		}
	}
	return ""
}

func overVolume(p *v1.Pod, u *usage.Pod, _ bool) string {
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if sizeLimit(v) && u.Volumes[v.Name].Bytes > v.EmptyDir.SizeLimit.Value() {
			return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, v.EmptyDir.SizeLimit.String())
		}
	}
	return ""
}

func overPod(p *v1.Pod, u *usage.Pod, layers bool) string {
	limits := resource.PodLimits(p, resource.PodResourcesOptions{})
	limit, ok := limits[v1.ResourceEphemeralStorage]
	if !ok || onDisk(u, counted{logs: true, volumes: true, layers: layers}).Bytes <= limit.Value() {
		return ""
	}
	return fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", limit.String())
}

func overContainer(p *v1.Pod, u *usage.Pod, layers bool) string {
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		limit := c.Resources.Limits.StorageEphemeral()
		if limit.IsZero() {
			continue
		}
		for _, used := range u.Containers {
			take := used.Logs.Bytes
			if layers {
				take += used.Writable.Bytes
			}
			if used.Name == c.Name && take > limit.Value() {
				return fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", c.Name, limit.String())
			}
		}
	}
	return ""
}

// counted says which of a pod's files count.
type counted struct{ logs, volumes, layers bool }

func onDisk(u *usage.Pod, what counted) usage.Disk {
	var sum usage.Disk
	for _, c := range u.Containers {
		if what.logs {
			sum = sum.Plus(c.Logs)
		}
		if what.layers {
			sum = sum.Plus(c.Writable)
		}
	}
	if what.volumes {
		for _, v := range u.Volumes {
			sum = sum.Plus(v)
		}
	}
	return sum
}
