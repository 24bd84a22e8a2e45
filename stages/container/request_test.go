package container_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/container"
)

func TestRequest(t *testing.T) {
	r := newRig(func(s *container.Settings) { s.Period = crifact.DefaultPeriod })
	st := start(func(p *v1.Pod, app *v1.Container) {
		p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](30)
		p.DeletionGracePeriodSeconds = ptr.To[int64](5)
		p.Spec.Volumes = []v1.Volume{{Name: "data"}}
		app.Command, app.Args = []string{"sh", "-c"}, []string{"echo $(WHO)"}
		app.WorkingDir, app.Stdin, app.StdinOnce, app.TTY = "/w", true, true, true
		app.Env = []v1.EnvVar{{Name: "WHO", Value: "me"}}
		app.VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
		app.TerminationMessagePath, app.TerminationMessagePolicy = "/dev/termination-log", v1.TerminationMessageReadFile
		app.Ports = []v1.ContainerPort{{ContainerPort: 80, Protocol: v1.ProtocolTCP}}
		app.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 3}}}
	})
	got := request(t, r, st)
	masked := got.GetLinux().GetSecurityContext().GetMaskedPaths()
	require.Subset(t, masked, []string{"/proc/kcore", "/sys/firmware", "/proc/acpi"})
	want := &runtimeapi.ContainerConfig{
		Metadata:   &runtimeapi.ContainerMetadata{Name: "app", Attempt: 3},
		Image:      &runtimeapi.ImageSpec{Image: "sha256:1", UserSpecifiedImage: "img:1"},
		Command:    []string{"sh", "-c"},
		Args:       []string{"echo me"},
		WorkingDir: "/w",
		Envs:       []*runtimeapi.KeyValue{{Key: "WHO", Value: []byte("me")}},
		Mounts: []*runtimeapi.Mount{
			{ContainerPath: "/data", HostPath: "/pods/u-1/data"},
			{ContainerPath: "/etc/hosts", HostPath: "/pods/u-1/etc-hosts", SelinuxRelabel: true},
			{ContainerPath: "/dev/termination-log", HostPath: "/pods/u-1/app/log", SelinuxRelabel: true},
		},
		Labels: map[string]string{
			"io.kubernetes.pod.name": "web", "io.kubernetes.pod.namespace": "prod", "io.kubernetes.pod.uid": "u-1",
			"io.kubernetes.container.name": "app",
		},
		Annotations: map[string]string{
			"io.kubernetes.container.hash":                     "hash-app",
			"io.kubernetes.container.restartCount":             "3",
			"io.kubernetes.container.terminationMessagePath":   "/dev/termination-log",
			"io.kubernetes.container.terminationMessagePolicy": "File",
			"io.kubernetes.container.ports":                    `[{"containerPort":80,"protocol":"TCP"}]`,
			"io.kubernetes.container.preStopHandler":           `{"sleep":{"seconds":3}}`,
			"io.kubernetes.pod.terminationGracePeriod":         "30",
			"io.kubernetes.pod.deletionGracePeriod":            "5",
		},
		LogPath: "app/3.log",
		Stdin:   true, StdinOnce: true, Tty: true,
		Linux: &runtimeapi.LinuxContainerConfig{
			Resources: &runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuShares: 2, OomScoreAdj: 1000},
			SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
				NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER, UsernsOptions: nodeUsers},
				RunAsUser:        &runtimeapi.Int64Value{},
				Seccomp:          &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined},
				MaskedPaths:      masked,
				ReadonlyPaths:    []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
			},
		},
	}
	require.Empty(t, cmp.Diff(want, got, protocmp.Transform()))
	require.Equal(t, "s1", r.rt.in)
	require.Same(t, st.Sandbox, r.rt.with)
	require.Equal(t, []container.Hosts{{Hostname: "web", IPs: []string{"10.0.0.9", "fd00::9"}}}, r.files.hosts)

	bare := request(t, newRig(nil), start(nil))
	require.Len(t, bare.GetAnnotations(), 4, "no ports, hook or grace: no annotation")
	require.Nil(t, bare.GetCommand(), "the image's own command")
}

func TestStopSignalNeedsItsGate(t *testing.T) {
	change := func(_ *v1.Pod, app *v1.Container) { app.Lifecycle = &v1.Lifecycle{StopSignal: ptr.To(v1.SIGUSR1)} }
	require.Equal(t, runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT, request(t, newRig(nil), start(change)).GetStopSignal())
	on := func(s *container.Settings) { s.StopSignals = true }
	require.Equal(t, runtimeapi.Signal_SIGNAL_SIGUSR1, request(t, newRig(on), start(change)).GetStopSignal())
	require.Equal(t, runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT, request(t, newRig(on), start(nil)).GetStopSignal())
}

func TestContainersOfAUserNamespaceSeeTheirMountsThroughIt(t *testing.T) {
	ids := []*runtimeapi.IDMapping{{HostId: 65536, Length: 65536}}
	users := &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_POD, Uids: ids, Gids: ids}
	st := start(func(p *v1.Pod, app *v1.Container) {
		p.Spec.HostUsers = ptr.To(false)
		p.Spec.Volumes = []v1.Volume{{Name: "v"}}
		app.VolumeMounts = []v1.VolumeMount{{Name: "v", MountPath: "/v"}}
		app.TerminationMessagePath = "/dev/termination-log"
	})
	st.Sandbox = &runtimeapi.PodSandboxConfig{Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
		NamespaceOptions: &runtimeapi.NamespaceOption{UsernsOptions: users},
	}}}
	got := request(t, newRig(nil), st)
	require.Same(t, users, got.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions())
	require.Len(t, got.GetMounts(), 3, "the volume, the hosts file and the last words")
	for _, m := range got.GetMounts() {
		require.Equal(t, ids, m.GetUidMappings(), m.GetContainerPath())
		require.Equal(t, ids, m.GetGidMappings(), m.GetContainerPath())
	}
}

func TestMounts(t *testing.T) {
	mount := func(m v1.VolumeMount) func(p *v1.Pod, app *v1.Container) {
		return func(p *v1.Pod, app *v1.Container) {
			p.Spec.Volumes = []v1.Volume{
				{Name: "v"},
				{Name: "cm", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{}}},
				{Name: "empty", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
				{Name: "down", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{}}},
				{Name: "broken"},
			}
			app.VolumeMounts = []v1.VolumeMount{m}
		}
	}
	enabled, maybe, disabled := ptr.To(v1.RecursiveReadOnlyEnabled), ptr.To(v1.RecursiveReadOnlyIfPossible), ptr.To(v1.RecursiveReadOnlyDisabled)
	for name, tc := range map[string]struct {
		mount     v1.VolumeMount
		recursive bool // the runtime can
		want      *runtimeapi.Mount
		err       string
	}{
		"plain":               {v1.VolumeMount{Name: "v", MountPath: "/m"}, false, &runtimeapi.Mount{ContainerPath: "/m"}, ""},
		"relative path":       {v1.VolumeMount{Name: "v", MountPath: "m/"}, false, &runtimeapi.Mount{ContainerPath: "/m"}, ""},
		"read-only":           {v1.VolumeMount{Name: "v", MountPath: "/m", ReadOnly: true}, false, &runtimeapi.Mount{ContainerPath: "/m", Readonly: true}, ""},
		"read-only by nature": {v1.VolumeMount{Name: "cm", MountPath: "/m"}, false, &runtimeapi.Mount{ContainerPath: "/m", HostPath: "/pods/u-1/cm", Readonly: true, SelinuxRelabel: true}, ""},
		"emptyDir":            {v1.VolumeMount{Name: "empty", MountPath: "/m"}, false, &runtimeapi.Mount{ContainerPath: "/m", HostPath: "/pods/u-1/empty", SelinuxRelabel: true}, ""},
		"downwardAPI":         {v1.VolumeMount{Name: "down", MountPath: "/m"}, false, &runtimeapi.Mount{ContainerPath: "/m", HostPath: "/pods/u-1/down", Readonly: true, SelinuxRelabel: true}, ""},
		"propagation None": {
			v1.VolumeMount{Name: "v", MountPath: "/m", MountPropagation: ptr.To(v1.MountPropagationNone)},
			false,
			&runtimeapi.Mount{ContainerPath: "/m"}, "",
		},
		"propagation in": {
			v1.VolumeMount{Name: "v", MountPath: "/m", MountPropagation: ptr.To(v1.MountPropagationHostToContainer)},
			false,
			&runtimeapi.Mount{ContainerPath: "/m", Propagation: runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER}, "",
		},
		"propagation both ways": {
			v1.VolumeMount{Name: "v", MountPath: "/m", MountPropagation: ptr.To(v1.MountPropagationBidirectional)},
			false,
			&runtimeapi.Mount{ContainerPath: "/m", Propagation: runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL}, "",
		},
		"propagation unknown": {v1.VolumeMount{Name: "v", MountPath: "/m", MountPropagation: ptr.To(v1.MountPropagationMode("x"))}, false, nil, "unknown mode"},
		"recursively read-only": {
			v1.VolumeMount{Name: "v", MountPath: "/m", ReadOnly: true, RecursiveReadOnly: enabled},
			true,
			&runtimeapi.Mount{ContainerPath: "/m", Readonly: true, RecursiveReadOnly: true}, "",
		},
		"recursively, not supported": {
			v1.VolumeMount{Name: "v", MountPath: "/m", ReadOnly: true, RecursiveReadOnly: enabled},
			false, nil,
			"does not support it",
		},
		"recursively, not read-only": {v1.VolumeMount{Name: "v", MountPath: "/m", RecursiveReadOnly: enabled}, true, nil, "needs readOnly"},
		"recursively, with propagation": {v1.VolumeMount{
			Name: "v", MountPath: "/m", ReadOnly: true, RecursiveReadOnly: enabled, MountPropagation: ptr.To(v1.MountPropagationBidirectional),
		}, true, nil, "does not go with"},
		"recursively if possible": {
			v1.VolumeMount{Name: "v", MountPath: "/m", ReadOnly: true, RecursiveReadOnly: maybe},
			true,
			&runtimeapi.Mount{ContainerPath: "/m", Readonly: true, RecursiveReadOnly: true}, "",
		},
		"recursively, not possible": {
			v1.VolumeMount{Name: "v", MountPath: "/m", ReadOnly: true, RecursiveReadOnly: maybe},
			false,
			&runtimeapi.Mount{ContainerPath: "/m", Readonly: true}, "",
		},
		"recursively not": {
			v1.VolumeMount{Name: "v", MountPath: "/m", ReadOnly: true, RecursiveReadOnly: disabled},
			true,
			&runtimeapi.Mount{ContainerPath: "/m", Readonly: true}, "",
		},
		"recursively, unknown": {v1.VolumeMount{Name: "v", MountPath: "/m", RecursiveReadOnly: ptr.To(v1.RecursiveReadOnlyMode("x"))}, true, nil, "unknown mode"},
		"no such volume":       {v1.VolumeMount{Name: "x", MountPath: "/m"}, false, nil, `volumeMounts[0] (volume "x"): the pod's spec has no such volume`},
		"volume not set up":    {v1.VolumeMount{Name: "broken", MountPath: "/m"}, false, nil, "it is not set up"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			r.Config.Handler = func(*v1.Pod) pod.HandlerFeatures { return pod.HandlerFeatures{RecursiveReadOnly: tc.recursive} }
			if tc.err != "" {
				require.ErrorContains(t, refused(t, r, start(mount(tc.mount))), tc.err)
				return
			}
			if tc.want.HostPath == "" {
				tc.want.HostPath = "/pods/u-1/v"
			}
			require.Empty(t, cmp.Diff(tc.want, request(t, r, start(mount(tc.mount))).GetMounts()[0], protocmp.Transform()))
		})
	}
	devices := start(func(_ *v1.Pod, app *v1.Container) { app.VolumeDevices = []v1.VolumeDevice{{Name: "disk"}} })
	require.ErrorContains(t, refused(t, newRig(nil), devices), `volume "disk" cannot be a block device`)
}

func TestHostsFile(t *testing.T) {
	aliases := []v1.HostAlias{{IP: "1.2.3.4", Hostnames: []string{"a"}}}
	for name, tc := range map[string]struct {
		change func(p *v1.Pod, app *v1.Container)
		want   []container.Hosts
	}{
		"pod network": {
			func(p *v1.Pod, _ *v1.Container) { p.Spec.Subdomain, p.Spec.HostAliases = "sub", aliases },
			[]container.Hosts{{Hostname: "web", Domain: "sub.prod.svc.cluster.local", IPs: []string{"10.0.0.9", "fd00::9"}, Aliases: aliases}},
		},
		"host network": {
			func(p *v1.Pod, _ *v1.Container) { p.Spec.HostNetwork = true },
			[]container.Hosts{{HostNetwork: true, Hostname: "web", IPs: []string{"192.0.2.7", "2001:db8::7"}}},
		},
		"a volume is there": {
			func(p *v1.Pod, app *v1.Container) {
				p.Spec.Volumes = []v1.Volume{{Name: "v"}}
				app.VolumeMounts = []v1.VolumeMount{{Name: "v", MountPath: "/etc/hosts/"}}
			}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(func(s *container.Settings) { s.ClusterDomain = "cluster.local" })
			mounts := request(t, r, start(tc.change)).GetMounts()
			require.Equal(t, tc.want, r.files.hosts)
			require.Len(t, mounts, 1)
			require.Equal(t, "/etc/hosts", mounts[0].GetContainerPath())
			require.Equal(t, tc.want == nil, mounts[0].GetHostPath() == "/pods/u-1/v")
		})
	}

	r := newRig(nil)
	noIP := start(nil)
	noIP.SandboxID = "another"
	require.Empty(t, request(t, r, noIP).GetMounts())

	r = newRig(nil)
	r.files.hostErr = errors.New("disk full")
	require.ErrorContains(t, refused(t, r, start(nil)), "disk full")
}

func TestAContainerStartsWithoutATerminationLog(t *testing.T) {
	r := newRig(nil)
	r.files.logErr = errors.New("disk full")
	got := request(t, r, start(func(_ *v1.Pod, app *v1.Container) { app.TerminationMessagePath = "/dev/termination-log" }))
	require.Len(t, got.GetMounts(), 1, "the hosts file alone")
}

func TestResources(t *testing.T) {
	list := func(cpu, memory string) v1.ResourceList {
		l := v1.ResourceList{}
		if cpu != "" {
			l[v1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			l[v1.ResourceMemory] = resource.MustParse(memory)
		}
		return l
	}
	for name, tc := range map[string]struct {
		settings func(s *container.Settings)
		change   func(p *v1.Pod, app *v1.Container)
		want     *runtimeapi.LinuxContainerResources
	}{
		"burstable": {
			nil,
			func(_ *v1.Pod, app *v1.Container) {
				app.Resources = v1.ResourceRequirements{Requests: list("250m", "4Gi"), Limits: list("1", "8Gi")}
			},
			&runtimeapi.LinuxContainerResources{CpuShares: 256, MemoryLimitInBytes: 8 << 30, OomScoreAdj: 750},
		},
		"guaranteed": {
			nil,
			func(_ *v1.Pod, app *v1.Container) {
				app.Resources = v1.ResourceRequirements{Requests: list("1", "1Gi"), Limits: list("1", "1Gi")}
			},
			&runtimeapi.LinuxContainerResources{CpuShares: 1024, MemoryLimitInBytes: 1 << 30, OomScoreAdj: -997},
		},
		"node-critical": {
			nil,
			func(p *v1.Pod, _ *v1.Container) { p.Spec.PriorityClassName = "system-node-critical" },
			&runtimeapi.LinuxContainerResources{CpuShares: 2, OomScoreAdj: -997},
		},
		"burstable that asks for nearly nothing": {
			nil,
			func(_ *v1.Pod, app *v1.Container) { app.Resources.Requests = list("", "1") },
			&runtimeapi.LinuxContainerResources{CpuShares: 2, OomScoreAdj: 999},
		},
		"burstable that asks for all": {
			nil,
			func(_ *v1.Pod, app *v1.Container) { app.Resources.Requests = list("", "16Gi") },
			&runtimeapi.LinuxContainerResources{CpuShares: 2, OomScoreAdj: 3},
		},
		"limits of the pod": {
			func(s *container.Settings) { s.Period = crifact.DefaultPeriod },
			func(p *v1.Pod, app *v1.Container) {
				p.Spec.Resources = &v1.ResourceRequirements{Limits: list("2", "2Gi"), Requests: list("1", "2Gi")}
				app.Resources.Limits = list("1", "")
			},
			&runtimeapi.LinuxContainerResources{CpuShares: 1024, CpuPeriod: 100000, CpuQuota: 100000, MemoryLimitInBytes: 2 << 30, OomScoreAdj: 875},
		},
		"huge pages": {
			func(s *container.Settings) { s.HugePageSizes = []string{"1GB", "2MB"} },
			func(_ *v1.Pod, app *v1.Container) {
				app.Resources.Limits = v1.ResourceList{"hugepages-2Mi": resource.MustParse("4Mi"), "hugepages-x": resource.MustParse("1")}
			},
			&runtimeapi.LinuxContainerResources{CpuShares: 2, OomScoreAdj: 1000, HugepageLimits: []*runtimeapi.HugepageLimit{
				{PageSize: "1GB"}, {PageSize: "2MB", Limit: 4 << 20},
			}},
		},
		"cgroup v2": {
			func(s *container.Settings) { s.CgroupV2, s.SwapLimit, s.OOMGroup = true, true, true },
			func(_ *v1.Pod, app *v1.Container) { app.Resources.Limits = list("", "1Gi") },
			&runtimeapi.LinuxContainerResources{CpuShares: 2, MemoryLimitInBytes: 1 << 30, OomScoreAdj: 999, Unified: map[string]string{
				"memory.oom.group": "1", "memory.swap.max": "0", "memory.high": "max",
			}},
		},
		"memory QoS without reservation": {
			func(s *container.Settings) { s.CgroupV2, s.MemoryQoS.On = true, true },
			func(_ *v1.Pod, app *v1.Container) { app.Resources.Requests = list("", "1Gi") },
			&runtimeapi.LinuxContainerResources{CpuShares: 2, OomScoreAdj: 938, Unified: map[string]string{"memory.min": "0", "memory.low": "0"}},
		},
		"memory QoS, Burstable, throttled on the way to its limit": {
			memoryQoS(0.9),
			func(_ *v1.Pod, app *v1.Container) {
				app.Resources.Requests, app.Resources.Limits = list("", "1Gi"), list("", "2Gi")
			},
			// 1Gi + 0.9*1Gi = 2040109465.6, and 4096 * 498073 of it are whole pages.
			&runtimeapi.LinuxContainerResources{CpuShares: 2, MemoryLimitInBytes: 2 << 30, OomScoreAdj: 938, Unified: map[string]string{
				"memory.low": "1073741824", "memory.high": "2040107008",
			}},
		},
		"memory QoS, Burstable, no limit: on the way to what the node has": {
			memoryQoS(0.5),
			func(_ *v1.Pod, app *v1.Container) { app.Resources.Requests = list("", "1Gi") },
			&runtimeapi.LinuxContainerResources{CpuShares: 2, OomScoreAdj: 938, Unified: map[string]string{
				"memory.low": "1073741824", "memory.high": "4831838208", // 1Gi + 0.5*7Gi
			}},
		},
		"memory QoS, Guaranteed is protected and not throttled": {
			memoryQoS(0.9),
			func(_ *v1.Pod, app *v1.Container) {
				app.Resources.Requests, app.Resources.Limits = list("1", "1Gi"), list("1", "1Gi")
			},
			&runtimeapi.LinuxContainerResources{CpuShares: 1024, MemoryLimitInBytes: 1 << 30, OomScoreAdj: -997, Unified: map[string]string{
				"memory.min": "1073741824",
			}},
		},
		"memory QoS, only the pod has a limit: its cgroup throttles": {
			memoryQoS(0.9),
			func(p *v1.Pod, app *v1.Container) {
				p.Spec.Resources = &v1.ResourceRequirements{Limits: list("", "2Gi"), Requests: list("", "1Gi")}
				app.Resources.Requests = list("", "1Gi")
			},
			&runtimeapi.LinuxContainerResources{CpuShares: 2, MemoryLimitInBytes: 2 << 30, OomScoreAdj: 938, Unified: map[string]string{
				"memory.low": "1073741824",
			}},
		},
		"limited swap: the share of the swap that the request is of the memory": {
			limitedSwap,
			func(_ *v1.Pod, app *v1.Container) { app.Resources.Requests = list("", "1Gi") },
			&runtimeapi.LinuxContainerResources{CpuShares: 2, OomScoreAdj: 938, Unified: map[string]string{
				"memory.high": "max", "memory.swap.max": "536870912", // 1/16 of 8 GiB
			}},
		},
		"limited swap: none where the memory is fixed": {
			limitedSwap,
			func(_ *v1.Pod, app *v1.Container) {
				app.Resources.Requests, app.Resources.Limits = list("1", "1Gi"), list("2", "1Gi")
			},
			&runtimeapi.LinuxContainerResources{CpuShares: 1024, MemoryLimitInBytes: 1 << 30, OomScoreAdj: 938, Unified: map[string]string{
				"memory.high": "max", "memory.swap.max": "0",
			}},
		},
		"limited swap: none for a static pod, which is critical": {
			limitedSwap,
			func(p *v1.Pod, app *v1.Container) {
				p.Annotations = map[string]string{pod.AnnotationSource: pod.SourceFile}
				app.Resources.Requests = list("", "1Gi")
			},
			&runtimeapi.LinuxContainerResources{CpuShares: 2, OomScoreAdj: 938, Unified: map[string]string{
				"memory.high": "max", "memory.swap.max": "0",
			}},
		},
		"huge pages of the pod": {
			func(s *container.Settings) { s.HugePageSizes = []string{"1GB", "2MB"} },
			func(p *v1.Pod, app *v1.Container) {
				p.Spec.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{"hugepages-2Mi": resource.MustParse("8Mi"), "hugepages-1Gi": resource.MustParse("1Gi")}}
				app.Resources.Limits = v1.ResourceList{"hugepages-2Mi": resource.MustParse("4Mi")}
			},
			&runtimeapi.LinuxContainerResources{CpuShares: 2, OomScoreAdj: 1000, HugepageLimits: []*runtimeapi.HugepageLimit{
				{PageSize: "1GB", Limit: 1 << 30}, {PageSize: "2MB", Limit: 4 << 20},
			}},
		},
		"cgroup v1 that limits swap": {
			func(s *container.Settings) { s.SwapLimit, s.OOMGroup = true, true },
			func(_ *v1.Pod, app *v1.Container) { app.Resources.Limits = list("", "1Gi") },
			&runtimeapi.LinuxContainerResources{CpuShares: 2, MemoryLimitInBytes: 1 << 30, MemorySwapLimitInBytes: 1 << 30, OomScoreAdj: 999},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := request(t, newRig(tc.settings), start(tc.change)).GetLinux().GetResources()
			require.Empty(t, cmp.Diff(tc.want, got, protocmp.Transform()))
		})
	}
}

// memoryQoS reserves requested memory and throttles by a factor; the formula is
// stated anew here.
func memoryQoS(factor float64) func(s *container.Settings) {
	return func(s *container.Settings) {
		s.CgroupV2, s.Allocatable = true, v1.ResourceList{v1.ResourceMemory: resource.MustParse("8Gi")}
		s.MemoryQoS = container.MemoryQoS{On: true, Reserved: true, High: func(request, limit int64) int64 {
			if limit == 0 || request == limit {
				return 0
			}
			return (request + int64(factor*float64(limit-request))) / 4096 * 4096
		}}
	}
}

func limitedSwap(s *container.Settings) {
	s.CgroupV2, s.SwapLimit, s.LimitedSwap, s.Swap = true, true, true, 8<<30
}

func TestASidecarIsNotKilledBeforeItsContainers(t *testing.T) {
	st := start(func(p *v1.Pod, app *v1.Container) {
		app.Resources.Requests = v1.ResourceList{v1.ResourceMemory: resource.MustParse("8Gi")}
		p.Spec.InitContainers = []v1.Container{{Name: "proxy", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}, {Name: "once"}}
	})
	for i, want := range []int64{500, 999} {
		st.Container = &st.State.Pod().Spec.InitContainers[i]
		require.Equal(t, want, request(t, newRig(nil), st).GetLinux().GetResources().GetOomScoreAdj(), st.Container.Name)
	}
}
