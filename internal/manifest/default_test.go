package manifest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/flowlet/flowlet/internal/manifest"
)

// That all defaults are those of Kubernetes is tested in test/oracle, against
// Kubernetes. Here are the ones that people rely on.
func TestDefaults(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{
		HostNetwork: true,
		Containers: []v1.Container{{
			Name: "c", Image: "app",
			Ports:         []v1.ContainerPort{{ContainerPort: 80}},
			LivenessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromInt32(80)}}},
			Resources:     v1.ResourceRequirements{Limits: v1.ResourceList{"memory": resource.MustParse("1Gi")}},
		}},
		Volumes: []v1.Volume{{Name: "v"}, {Name: "h", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/h"}}}},
	}}
	manifest.Default(pod)
	require.Empty(t, cmp.Diff(v1.PodSpec{
		HostNetwork: true, RestartPolicy: "Always", DNSPolicy: "ClusterFirst", SchedulerName: "default-scheduler",
		TerminationGracePeriodSeconds: ptr.To[int64](30), SecurityContext: &v1.PodSecurityContext{}, EnableServiceLinks: ptr.To(true),
		Containers: []v1.Container{{
			Name: "c", Image: "app", ImagePullPolicy: "Always",
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: "File",
			Ports: []v1.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: "TCP"}},
			LivenessProbe: &v1.Probe{
				ProbeHandler:   v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromInt32(80), Path: "/", Scheme: "HTTP"}},
				TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3,
			},
			Resources: v1.ResourceRequirements{
				Limits:   v1.ResourceList{"memory": resource.MustParse("1Gi")},
				Requests: v1.ResourceList{"memory": resource.MustParse("1Gi")},
			},
		}},
		Volumes: []v1.Volume{
			{Name: "v", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
			{Name: "h", VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/h", Type: ptr.To(v1.HostPathUnset)}}},
		},
	}, pod.Spec))
}

func TestDefaultPullPolicy(t *testing.T) {
	const digest = "@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	for image, want := range map[string]v1.PullPolicy{
		"app": v1.PullAlways, "app:latest": v1.PullAlways, "registry:5000/app": v1.PullAlways, "app:latest" + digest: v1.PullAlways,
		"app:1": v1.PullIfNotPresent, "app" + digest: v1.PullIfNotPresent, "Not An Image": v1.PullIfNotPresent,
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Image: image}, {Image: image, ImagePullPolicy: v1.PullNever}}}}
		manifest.Default(pod)
		require.Equal(t, want, pod.Spec.Containers[0].ImagePullPolicy, image)
		require.Equal(t, v1.PullNever, pod.Spec.Containers[1].ImagePullPolicy, image)
	}
}

func TestDefaultPodLevelResources(t *testing.T) {
	list := func(pairs ...string) v1.ResourceList {
		out := v1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			out[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return out
	}
	pod := &v1.Pod{Spec: v1.PodSpec{
		Resources: &v1.ResourceRequirements{Limits: list("cpu", "4")},
		Containers: []v1.Container{
			{Resources: v1.ResourceRequirements{Requests: list("cpu", "1"), Limits: list("memory", "1Gi", "hugepages-2Mi", "4Mi")}},
			{Resources: v1.ResourceRequirements{Requests: list("cpu", "500m"), Limits: list("memory", "2Gi")}},
		},
	}}
	manifest.Default(pod)
	equal := func(want, got v1.ResourceList) {
		t.Helper()
		require.Len(t, got, len(want))
		for name, q := range want {
			have := got[name]
			require.Zero(t, q.Cmp(have), "%s: %s, want %s", name, have.String(), q.String())
		}
	}
	equal(list("cpu", "1500m", "memory", "3Gi", "hugepages-2Mi", "4Mi"), pod.Spec.Resources.Requests)
	equal(list("cpu", "4", "memory", "3Gi", "hugepages-2Mi", "4Mi"), pod.Spec.Resources.Limits)
}
