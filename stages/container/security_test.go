package container_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/container"
)

func TestSecurityContextOfTheContainerWins(t *testing.T) {
	st := start(func(p *v1.Pod, app *v1.Container) {
		p.Spec.HostPID = true
		p.Spec.SecurityContext = &v1.PodSecurityContext{
			RunAsUser: ptr.To[int64](1), RunAsGroup: ptr.To[int64](2), FSGroup: ptr.To[int64](3), SupplementalGroups: []int64{4},
			SELinuxOptions: &v1.SELinuxOptions{Level: "pod"},
			SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeUnconfined},
		}
		app.SecurityContext = &v1.SecurityContext{
			RunAsUser: ptr.To[int64](10), Privileged: ptr.To(true), ReadOnlyRootFilesystem: ptr.To(true), AllowPrivilegeEscalation: ptr.To(false),
			Capabilities:   &v1.Capabilities{Add: []v1.Capability{"NET_ADMIN"}, Drop: []v1.Capability{"ALL"}},
			SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault},
			ProcMount:      ptr.To(v1.UnmaskedProcMount),
		}
	})
	require.Empty(t, cmp.Diff(&runtimeapi.LinuxContainerSecurityContext{
		Capabilities:       &runtimeapi.Capability{AddCapabilities: []string{"NET_ADMIN"}, DropCapabilities: []string{"ALL"}},
		Privileged:         true,
		NamespaceOptions:   &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_NODE, UsernsOptions: nodeUsers},
		SelinuxOptions:     &runtimeapi.SELinuxOption{Level: "pod"},
		RunAsUser:          &runtimeapi.Int64Value{Value: 10},
		RunAsGroup:         &runtimeapi.Int64Value{Value: 2},
		ReadonlyRootfs:     true,
		SupplementalGroups: []int64{3, 4},
		NoNewPrivs:         true,
		Seccomp:            &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
	}, request(t, newRig(nil), st).GetLinux().GetSecurityContext(), protocmp.Transform()))
}

func TestSELinuxLabelOfTheContainerWins(t *testing.T) {
	st := start(func(p *v1.Pod, app *v1.Container) {
		p.Spec.SecurityContext = &v1.PodSecurityContext{SELinuxOptions: &v1.SELinuxOptions{Level: "pod"}}
		app.SecurityContext = &v1.SecurityContext{SELinuxOptions: &v1.SELinuxOptions{User: "u", Role: "r", Type: "t", Level: "own"}}
	})
	require.Empty(t, cmp.Diff(&runtimeapi.SELinuxOption{User: "u", Role: "r", Type: "t", Level: "own"},
		request(t, newRig(nil), st).GetLinux().GetSecurityContext().GetSelinuxOptions(), protocmp.Transform()))
}

func TestUser(t *testing.T) {
	yes := ptr.To(true)
	for name, tc := range map[string]struct {
		image   pod.Image
		pod     *v1.PodSecurityContext
		own     *v1.SecurityContext
		uid     *int64
		name    string
		refusal string
	}{
		"root by default":       {uid: ptr.To[int64](0)},
		"the image's number":    {image: pod.Image{UID: ptr.To[int64](101)}, uid: ptr.To[int64](101)},
		"the image's name":      {image: pod.Image{User: "www"}, name: "www"},
		"runAsUser":             {image: pod.Image{User: "www"}, own: &v1.SecurityContext{RunAsUser: ptr.To[int64](5)}, uid: ptr.To[int64](5)},
		"runAsUser of the pod":  {pod: &v1.PodSecurityContext{RunAsUser: ptr.To[int64](6)}, uid: ptr.To[int64](6)},
		"not root, by runAs":    {own: &v1.SecurityContext{RunAsNonRoot: yes, RunAsUser: ptr.To[int64](5)}, uid: ptr.To[int64](5)},
		"not root, by image":    {image: pod.Image{UID: ptr.To[int64](7)}, pod: &v1.PodSecurityContext{RunAsNonRoot: yes}, uid: ptr.To[int64](7)},
		"not root is not asked": {own: &v1.SecurityContext{RunAsNonRoot: ptr.To(false)}, pod: &v1.PodSecurityContext{RunAsNonRoot: yes}, uid: ptr.To[int64](0)},
		"root by runAs": {
			own:     &v1.SecurityContext{RunAsNonRoot: yes, RunAsUser: ptr.To[int64](0)},
			refusal: `container's runAsUser breaks non-root policy (pod: "web_prod(u-1)", container: app)`,
		},
		"root by image": {
			pod:     &v1.PodSecurityContext{RunAsNonRoot: yes},
			refusal: `container has runAsNonRoot and image will run as root (pod: "web_prod(u-1)", container: app)`,
		},
		"root, number 0": {
			image: pod.Image{UID: ptr.To[int64](0)}, own: &v1.SecurityContext{RunAsNonRoot: yes},
			refusal: "image will run as root",
		},
		"a name may be root's": {
			image: pod.Image{User: "www"}, own: &v1.SecurityContext{RunAsNonRoot: yes},
			refusal: "container has runAsNonRoot and image has non-numeric user (www), cannot verify user is non-root",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			st := start(func(p *v1.Pod, app *v1.Container) { p.Spec.SecurityContext, app.SecurityContext = tc.pod, tc.own })
			tc.image.ID = "sha256:1"
			st.Image = tc.image
			if tc.refusal != "" {
				require.ErrorContains(t, refused(t, r, st), tc.refusal)
				return
			}
			sc := request(t, r, st).GetLinux().GetSecurityContext()
			require.Equal(t, tc.name, sc.GetRunAsUsername())
			require.Equal(t, tc.uid == nil, sc.GetRunAsUser() == nil)
			require.Equal(t, ptr.Deref(tc.uid, 0), sc.GetRunAsUser().GetValue())
		})
	}
}

func TestSeccomp(t *testing.T) {
	profile := func(kind v1.SeccompProfileType, file *string) *v1.SeccompProfile {
		return &v1.SeccompProfile{Type: kind, LocalhostProfile: file}
	}
	for name, tc := range map[string]struct {
		def     bool
		profile *v1.SeccompProfile
		kind    runtimeapi.SecurityProfile_ProfileType
		ref     string
		refusal string
	}{
		"none":             {kind: runtimeapi.SecurityProfile_Unconfined},
		"the node default": {def: true, kind: runtimeapi.SecurityProfile_RuntimeDefault},
		"unconfined":       {def: true, profile: profile(v1.SeccompProfileTypeUnconfined, nil), kind: runtimeapi.SecurityProfile_Unconfined},
		"file": {
			profile: profile(v1.SeccompProfileTypeLocalhost, ptr.To("a/b.json")), kind: runtimeapi.SecurityProfile_Localhost,
			ref: "/var/lib/kubelet/seccomp/a/b.json",
		},
		"no file":            {profile: profile(v1.SeccompProfileTypeLocalhost, nil), refusal: "localhostProfile must name a file below /var/lib/kubelet/seccomp"},
		"a file outside":     {profile: profile(v1.SeccompProfileTypeLocalhost, ptr.To("../x")), refusal: "must name a file below"},
		"another type":       {profile: profile("Magic", nil), refusal: `unknown type "Magic"`},
		"the runtime's own":  {profile: profile(v1.SeccompProfileTypeRuntimeDefault, nil), kind: runtimeapi.SecurityProfile_RuntimeDefault},
		"absolute is no way": {profile: profile(v1.SeccompProfileTypeLocalhost, ptr.To("/etc/passwd")), refusal: "must name a file below"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(func(s *container.Settings) { s.SeccompDefault = tc.def })
			st := start(func(p *v1.Pod, _ *v1.Container) {
				p.Spec.SecurityContext = &v1.PodSecurityContext{SeccompProfile: tc.profile}
			})
			if tc.refusal != "" {
				require.ErrorContains(t, refused(t, r, st), tc.refusal)
				return
			}
			got := request(t, r, st).GetLinux().GetSecurityContext().GetSeccomp()
			require.Equal(t, tc.kind, got.GetProfileType())
			require.Equal(t, tc.ref, got.GetLocalhostRef())
		})
	}
}

func TestAppArmor(t *testing.T) {
	of := func(kind v1.AppArmorProfileType, name *string) *v1.AppArmorProfile {
		return &v1.AppArmorProfile{Type: kind, LocalhostProfile: name}
	}
	const annotation = "container.apparmor.security.beta.kubernetes.io/app"
	for name, tc := range map[string]struct {
		own, pod   *v1.AppArmorProfile
		annotation string
		want       *runtimeapi.SecurityProfile
		old        string
		refusal    string
	}{
		"none": {},
		"of the container": {
			own: of(v1.AppArmorProfileTypeLocalhost, ptr.To("p")), annotation: "unconfined", pod: of(v1.AppArmorProfileTypeUnconfined, nil),
			want: &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: "p"}, old: "localhost/p",
		},
		"of the annotation": {
			annotation: "localhost/q", pod: of(v1.AppArmorProfileTypeUnconfined, nil),
			want: &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: "q"}, old: "localhost/q",
		},
		"default by annotation":            {annotation: "runtime/default", want: &runtimeapi.SecurityProfile{}, old: "runtime/default"},
		"unconfined by annotation":         {annotation: "unconfined", want: &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}, old: "unconfined"},
		"of the pod":                       {pod: of(v1.AppArmorProfileTypeRuntimeDefault, nil), want: &runtimeapi.SecurityProfile{}, old: "runtime/default"},
		"no name":                          {own: of(v1.AppArmorProfileTypeLocalhost, nil), refusal: "localhostProfile must name a profile"},
		"an annotation that means nothing": {annotation: "magic", refusal: `unknown type "magic"`},
	} {
		t.Run(name, func(t *testing.T) {
			st := start(func(p *v1.Pod, app *v1.Container) {
				app.SecurityContext = &v1.SecurityContext{AppArmorProfile: tc.own}
				p.Spec.SecurityContext = &v1.PodSecurityContext{AppArmorProfile: tc.pod}
				p.Annotations = map[string]string{annotation: tc.annotation}
			})
			if tc.refusal != "" {
				require.ErrorContains(t, refused(t, newRig(nil), st), tc.refusal)
				return
			}
			sc := request(t, newRig(nil), st).GetLinux().GetSecurityContext()
			require.Empty(t, cmp.Diff(tc.want, sc.GetApparmor(), protocmp.Transform()))
			//lint:ignore SA1019 older runtimes read this field
			require.Equal(t, tc.old, sc.GetApparmorProfile())
		})
	}
}

func TestAnEphemeralContainerJoinsItsTarget(t *testing.T) {
	debug := func(target string, change func(p *v1.Pod)) container.Start {
		st := start(func(p *v1.Pod, _ *v1.Container) {
			p.Spec.EphemeralContainers = []v1.EphemeralContainer{{
				EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Image: "img"}, TargetContainerName: target,
			}}
			if change != nil {
				change(p)
			}
		})
		common := v1.Container(st.State.Pod().Spec.EphemeralContainers[0].EphemeralContainerCommon)
		st.Container = &common
		st.State.Containers = []pod.Container{{ID: "new", Name: "app", SandboxID: "s1"}, {ID: "old", Name: "app", SandboxID: "s0"}}
		return st
	}
	for name, tc := range map[string]struct {
		start container.Start
		want  *runtimeapi.NamespaceOption
	}{
		"target": {debug("app", nil), &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_TARGET, TargetId: "new", UsernsOptions: nodeUsers}},
		"alone":  {debug("", nil), &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER, UsernsOptions: nodeUsers}},
		"shared": {
			debug("app", func(p *v1.Pod) { p.Spec.ShareProcessNamespace = ptr.To(true) }),
			&runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_POD, UsernsOptions: nodeUsers},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			got := request(t, r, tc.start).GetLinux().GetSecurityContext().GetNamespaceOptions()
			require.Empty(t, cmp.Diff(tc.want, got, protocmp.Transform()))
			require.Equal(t, "spec.ephemeralContainers{debug} Normal Created: Container created", r.ev.lines[0])
		})
	}
	_, err := newRig(nil).Start(t.Context(), debug("nobody", nil))
	require.ErrorContains(t, err, "unable to find target container nobody")
	require.Equal(t, "CreateContainerConfigError", pod.ReasonOf(err))
}
