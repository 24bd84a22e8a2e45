package container

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// The fields below are alpha in Kubernetes v1.37, and off there.

func alphaOfContainer(at string, ct *v1.Container) []string {
	var out []string
	for i := range ct.VolumeMounts {
		if len(ct.VolumeMounts[i].BindMountOptions) > 0 {
			out = append(out, fmt.Sprintf("%s.volumeMounts[%d].bindMountOptions", at, i))
		}
	}
	for _, probe := range []struct {
		name string
		p    *v1.Probe
	}{{"livenessProbe", ct.LivenessProbe}, {"readinessProbe", ct.ReadinessProbe}, {"startupProbe", ct.StartupProbe}} {
		switch p := probe.p; {
		case p == nil:
		case p.HTTPGet != nil && p.HTTPGet.Protocol != nil && *p.HTTPGet.Protocol != v1.HTTPProtocolHTTP1:
			out = append(out, at+"."+probe.name+".httpGet.protocol")
		case p.GRPC != nil && p.GRPC.Mode != nil && *p.GRPC.Mode != v1.GRPCProbeModePlaintext:
			out = append(out, at+"."+probe.name+".grpc.mode")
		}
	}
	return out
}

func alphaOfVolume(at string, v *v1.Volume) []string {
	owned := func(items []v1.DownwardAPIVolumeFile) bool {
		return slices.ContainsFunc(items, func(f v1.DownwardAPIVolumeFile) bool { return f.User != nil })
	}
	switch {
	case v.EmptyDir != nil && v.EmptyDir.Mode != nil:
		return []string{at + ".emptyDir.mode"}
	case v.DownwardAPI != nil && (v.DownwardAPI.DefaultUser != nil || owned(v.DownwardAPI.Items)):
		return []string{at + ".downwardAPI: users of files"}
	case v.Projected != nil && (v.Projected.DefaultUser != nil || slices.ContainsFunc(v.Projected.Sources, func(s v1.VolumeProjection) bool {
		return s.DownwardAPI != nil && owned(s.DownwardAPI.Items)
	})):
		return []string{at + ".projected: users of files"}
	}
	return nil
}
