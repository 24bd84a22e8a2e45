package container

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// Unsupported returns the paths of the fields of p that this build does not
// act on, in the order of the spec, so that nobody relies on them. Fields that
// a start fails on are among them. A field that only waits for a feature gate
// says which.
func Unsupported(p *v1.Pod, s Settings) []string {
	var out []string
	for _, list := range []struct {
		name       string
		containers []v1.Container
	}{{"spec.initContainers", p.Spec.InitContainers}, {"spec.containers", p.Spec.Containers}} {
		for i := range list.containers {
			at := fmt.Sprintf("%s[%d]", list.name, i)
			out = append(out, ignored(at, &list.containers[i], s)...)
			out = append(out, alphaOfContainer(at, &list.containers[i])...)
		}
	}
	for i := range p.Spec.Volumes {
		out = append(out, alphaOfVolume(fmt.Sprintf("spec.volumes[%d]", i), &p.Spec.Volumes[i])...)
	}
	for _, f := range []struct {
		path string
		set  bool
	}{
		{"spec.runtimeClassName", p.Spec.RuntimeClassName != nil && *p.Spec.RuntimeClassName != ""},
		{"spec.imagePullSecrets", len(p.Spec.ImagePullSecrets) > 0},
		{"spec.resourceClaims", len(p.Spec.ResourceClaims) > 0},
	} {
		if f.set {
			out = append(out, f.path)
		}
	}
	return out
}

func ignored(at string, ct *v1.Container, s Settings) []string {
	var out []string
	for _, f := range []struct {
		path string
		set  bool
	}{
		{"lifecycle.stopSignal (needs the feature gate ContainerStopSignals)", !s.StopSignals && ct.Lifecycle != nil && ct.Lifecycle.StopSignal != nil},
		{"resources.claims", len(ct.Resources.Claims) > 0},
		{"volumeDevices", len(ct.VolumeDevices) > 0},
	} {
		if f.set {
			out = append(out, at+"."+f.path)
		}
	}
	return out
}
