package container_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/container"
)

// partial starts a container that mounts something whole, and then m.
func partial(m v1.VolumeMount) func(p *v1.Pod, app *v1.Container) {
	return func(p *v1.Pod, app *v1.Container) {
		p.Annotations = map[string]string{"a": "b"}
		p.Spec.Volumes = []v1.Volume{{Name: "v"}, {Name: "image", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "data:1"}}}}
		app.Env = []v1.EnvVar{
			{Name: "POD", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			{Name: "EMPTY"},
			{Name: "UP", Value: ".."},
			{Name: "ROOT", Value: "/x"},
		}
		m.MountPath = "/m"
		app.VolumeMounts = []v1.VolumeMount{{Name: "v", MountPath: "/v"}, m}
	}
}

func TestSubPaths(t *testing.T) {
	for name, tc := range map[string]struct {
		mount v1.VolumeMount
		want  string
		err   string
	}{
		"subPath":            {v1.VolumeMount{SubPath: "a/b"}, "a/b", ""},
		"variables are text": {v1.VolumeMount{SubPath: "$(POD)"}, "$(POD)", ""},
		"expression":         {v1.VolumeMount{SubPathExpr: "x/$(POD)-$$(POD)"}, "x/web-$(POD)", ""},
		"unset and empty": {
			v1.VolumeMount{SubPathExpr: "$(NONE)/$(EMPTY)/$(POD)/$(NONE)"},
			"",
			`volumeMounts[1] (volume "v"): subPathExpr "$(NONE)/$(EMPTY)/$(POD)/$(NONE)": missing value for EMPTY, NONE: set it in env`,
		},
		"climbs":            {v1.VolumeMount{SubPath: "a/../../b"}, "", `subPath "a/../../b": must be a relative path`},
		"climbs by value":   {v1.VolumeMount{SubPathExpr: "$(UP)/x"}, "", `subPathExpr "../x": must be a relative path`},
		"absolute":          {v1.VolumeMount{SubPathExpr: "$(ROOT)"}, "", `subPathExpr "/x": must be a relative path`},
		"leads out of it":   {v1.VolumeMount{SubPath: "broken"}, "", `volumeMounts[1] (volume "v"): it leads out of the volume`},
		"image, no runtime": {v1.VolumeMount{Name: "image"}, "", "does not mount images as volumes"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.mount.Name == "" {
				tc.mount.Name = "v"
			}
			tc.mount.ReadOnly = true
			st := start(partial(tc.mount))
			if tc.err != "" {
				require.ErrorContains(t, refused(t, newRig(nil), st), tc.err)
				return
			}
			want := &runtimeapi.Mount{ContainerPath: "/m", HostPath: "/pods/u-1/parts/app/1/" + tc.want, Readonly: true}
			require.Empty(t, cmp.Diff(want, request(t, newRig(nil), st).GetMounts()[1], protocmp.Transform()))
		})
	}
}

// wholeVolumes cannot show parts.
type wholeVolumes struct{ container.Volumes }

func TestVolumesThatCannotBeMountedInPart(t *testing.T) {
	r := newRig(nil)
	r.Volumes = wholeVolumes{r.Volumes}
	require.ErrorContains(t, refused(t, r, start(partial(v1.VolumeMount{Name: "v", SubPath: "a"}))), "cannot be mounted in part")
}

func TestImageVolumes(t *testing.T) {
	r := newRig(nil)
	r.ImageVolumes = func() bool { return true }
	st := start(partial(v1.VolumeMount{Name: "image", SubPathExpr: "$(POD)"}))
	require.ErrorContains(t, refused(t, r, st), `volumeMounts[1] (volume "image"): image "data:1" has not been pulled`)

	st.State.Images = map[string]pod.Image{"data:1": {ID: "sha256:d"}}
	r.ev.lines = nil
	want := &runtimeapi.Mount{
		ContainerPath: "/m", Readonly: true, ImageSubPath: "web",
		Image: &runtimeapi.ImageSpec{Image: "sha256:d", UserSpecifiedImage: "data:1", Annotations: map[string]string{"a": "b"}},
	}
	require.Empty(t, cmp.Diff(want, request(t, r, st).GetMounts()[1], protocmp.Transform()))
}
