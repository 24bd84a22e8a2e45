package container_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/flowlet/flowlet/stages/container"
)

func field(path string) *v1.EnvVarSource {
	return &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: path}}
}

func amount(of, container, divisor string) *v1.EnvVarSource {
	r := &v1.ResourceFieldSelector{Resource: of, ContainerName: container}
	if divisor != "" {
		r.Divisor = resource.MustParse(divisor)
	}
	return &v1.EnvVarSource{ResourceFieldRef: r}
}

func TestEnvironment(t *testing.T) {
	r := newRig(func(s *container.Settings) {
		s.Allocatable = v1.ResourceList{
			v1.ResourceCPU: resource.MustParse("8"), v1.ResourceMemory: resource.MustParse("16Gi"),
			v1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		}
	})
	got := request(t, r, start(func(p *v1.Pod, _ *v1.Container) {
		p.Spec.ServiceAccountName = "robot"
		p.Annotations = map[string]string{"note": "hi"}
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "other", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse("64Mi")},
		}})
		app := &p.Spec.Containers[0]
		app.Resources = v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m"), "hugepages-2Mi": resource.MustParse("4Mi")},
			Limits:   v1.ResourceList{v1.ResourceCPU: resource.MustParse("1500m")},
		}
		app.Env = []v1.EnvVar{
			{Name: "A", Value: "1"},
			{Name: "B", Value: "$(A)-$(LATER)-$$(A)"},
			{Name: "LATER", Value: "x"},
			{Name: "A", Value: "2$(A)"},
			{Name: "FIELD", ValueFrom: field("metadata.name")},
			{Name: "USED", Value: "<$(FIELD)>"},
			{Name: "NS", ValueFrom: field("metadata.namespace")},
			{Name: "UID", ValueFrom: field("metadata.uid")},
			{Name: "LABEL", ValueFrom: field("metadata.labels['tier']")},
			{Name: "NOTE", ValueFrom: field("metadata.annotations['note']")},
			{Name: "NODE", ValueFrom: field("spec.nodeName")},
			{Name: "SA", ValueFrom: field("spec.serviceAccountName")},
			{Name: "HOST", ValueFrom: field("status.hostIP")},
			{Name: "HOSTS", ValueFrom: field("status.hostIPs")},
			{Name: "POD", ValueFrom: field("status.podIP")},
			{Name: "PODS", ValueFrom: field("status.podIPs")},
			{Name: "CPU", ValueFrom: amount("limits.cpu", "", "")},
			{Name: "CPUM", ValueFrom: amount("limits.cpu", "app", "1m")},
			{Name: "MEM", ValueFrom: amount("limits.memory", "", "1Gi")},
			{Name: "DISK", ValueFrom: amount("limits.ephemeral-storage", "", "1Gi")},
			{Name: "HUGE", ValueFrom: amount("requests.hugepages-2Mi", "", "1Mi")},
			{Name: "OTHER", ValueFrom: amount("requests.memory", "other", "1Mi")},
			{Name: "MAYBE", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{Optional: ptr.To(true)}}},
		}
		app.EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{Optional: ptr.To(true)}}}
	}))
	want := map[string]string{
		"A": "21", "B": "1-$(LATER)-$(A)", "LATER": "x", "FIELD": "web", "USED": "<web>", "NS": "prod", "UID": "u-1", "LABEL": "front",
		"NOTE": "hi", "NODE": "n1", "SA": "robot", "HOST": "192.0.2.7", "HOSTS": "192.0.2.7,2001:db8::7", "POD": "10.0.0.9",
		"PODS": "10.0.0.9,fd00::9", "CPU": "2", "CPUM": "1500", "MEM": "16", "DISK": "100", "HUGE": "4", "OTHER": "64",
	}
	have := map[string]string{}
	for _, kv := range got.GetEnvs() {
		have[kv.GetKey()] = string(kv.GetValue())
	}
	require.Equal(t, want, have)
	require.Len(t, got.GetEnvs(), len(want), "each name once")
	require.Equal(t, "A", got.GetEnvs()[0].GetKey())
	require.Equal(t, "OTHER", got.GetEnvs()[len(want)-1].GetKey(), "in the order of the spec")
}

func TestHostNetworkPodsHaveTheNodesAddresses(t *testing.T) {
	got := request(t, newRig(nil), start(func(p *v1.Pod, app *v1.Container) {
		p.Spec.HostNetwork = true
		app.Env = []v1.EnvVar{{Name: "POD", ValueFrom: field("status.podIP")}}
	}))
	require.Equal(t, "192.0.2.7", string(got.GetEnvs()[0].GetValue()))
}

func TestEnvironmentThatCannotBeResolved(t *testing.T) {
	secret := &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "s3cr3t"}}}
	config := &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{
		LocalObjectReference: v1.LocalObjectReference{Name: "conf"}, Optional: ptr.To(false),
	}}
	cases := map[string]struct {
		from *v1.EnvVarSource
		err  string
	}{
		"secret":            {secret, `env X: secret "s3cr3t" not found: this node runs without an API server`},
		"config map":        {config, `env X: configmap "conf" not found`},
		"file":              {&v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{VolumeName: "v"}}, "env X: fileKeyRef: needs the feature gate EnvFiles"},
		"field":             {field("spec.nothing"), "env X: fieldRef spec.nothing: unsupported fieldPath"},
		"resource":          {amount("limits.gold", "", ""), "env X: resourceFieldRef limits.gold"},
		"no such container": {amount("limits.cpu", "nobody", ""), `env X: resourceFieldRef: the pod has no container "nobody"`},
		"nothing":           {&v1.EnvVarSource{}, "env X: valueFrom names no source"},
	}
	for name, tc := range maps.All(cases) {
		t.Run(name, func(t *testing.T) {
			st := start(func(_ *v1.Pod, app *v1.Container) { app.Env = []v1.EnvVar{{Name: "X", ValueFrom: tc.from}} })
			require.ErrorContains(t, refused(t, newRig(nil), st), tc.err)
		})
	}
	for name, from := range map[string]v1.EnvFromSource{
		`envFrom[0]: secret "a" not found`:    {SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "a"}}},
		`envFrom[0]: configmap "b" not found`: {ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "b"}}},
		`envFrom[0]: source "unknown"`:        {},
	} {
		st := start(func(_ *v1.Pod, app *v1.Container) { app.EnvFrom = []v1.EnvFromSource{from} })
		require.ErrorContains(t, refused(t, newRig(nil), st), name)
	}
}
