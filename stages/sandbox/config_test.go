package sandbox_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/sandbox"
)

// nodeUsers: the pod shares the node's user namespace.
var nodeUsers = &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_NODE}

func state(change func(p *v1.Pod)) *pod.State {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "prod", UID: "u-1",
			Labels:      map[string]string{"app": "web"},
			Annotations: map[string]string{"kubernetes.io/config.source": "file"},
		},
		Spec: v1.PodSpec{
			DNSPolicy:  v1.DNSDefault,
			Containers: []v1.Container{{Name: "app", Image: "img"}},
		},
	}
	if change != nil {
		change(p)
	}
	return &pod.State{Spec: &pod.Spec{Pod: p, Source: pod.SourceFile}, Identity: pod.Identity{Name: p.Name, Namespace: p.Namespace, UID: p.UID}}
}

var options = sandbox.Options{
	LogRoot: "/var/log/pods", CgroupParent: "/kubepods/besteffort/podu-1", Period: crifact.DefaultPeriod,
	DNS: sandbox.DNS{Host: &runtimeapi.DNSConfig{Servers: []string{"192.0.2.1"}}, ClusterDomain: "cluster.local"},
}

func build(t *testing.T, change func(p *v1.Pod)) *runtimeapi.PodSandboxConfig {
	t.Helper()
	c, err := sandbox.Config(state(change), 0, options)
	require.NoError(t, err)
	return c
}

func TestConfigOfASmallPod(t *testing.T) {
	got, err := sandbox.Config(state(nil), 3, options)
	require.NoError(t, err)
	want := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "prod", Uid: "u-1", Attempt: 3},
		Hostname:     "web",
		LogDirectory: "/var/log/pods/prod_web_u-1",
		DnsConfig:    &runtimeapi.DNSConfig{Servers: []string{"192.0.2.1"}},
		Labels: map[string]string{
			"app": "web", "io.kubernetes.pod.name": "web", "io.kubernetes.pod.namespace": "prod", "io.kubernetes.pod.uid": "u-1",
		},
		Annotations: map[string]string{"kubernetes.io/config.source": "file"},
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent: "/kubepods/besteffort/podu-1",
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
				NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER, UsernsOptions: nodeUsers},
				Seccomp:          &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
			},
			Overhead:  &runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuShares: 2},
			Resources: &runtimeapi.LinuxContainerResources{CpuPeriod: 100000, CpuShares: 2},
		},
	}
	require.Empty(t, cmp.Diff(want, got, protocmp.Transform()))
}

func TestConfigIsDeterministicAndLeavesThePodAlone(t *testing.T) {
	s := state(func(p *v1.Pod) {
		p.Spec.SecurityContext = &v1.PodSecurityContext{Sysctls: []v1.Sysctl{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}}}
		p.Spec.DNSConfig = &v1.PodDNSConfig{Options: []v1.PodDNSConfigOption{{Name: "x"}, {Name: "y", Value: ptr.To("1")}}}
	})
	before := s.Pod().DeepCopy()
	first, err := sandbox.Config(s, 0, options)
	require.NoError(t, err)
	for range 10 {
		again, err := sandbox.Config(s, 0, options)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(first, again, protocmp.Transform()))
	}
	require.Empty(t, cmp.Diff(before, s.Pod()))
}

func TestHostname(t *testing.T) {
	long := strings.Repeat("a", 62) + "-" + "bbb"
	for name, tc := range map[string]struct {
		change func(p *v1.Pod)
		want   string
		err    string
	}{
		"the pod's name":           {func(*v1.Pod) {}, "web", ""},
		"spec.hostname":            {func(p *v1.Pod) { p.Spec.Hostname = "h" }, "h", ""},
		"subdomain is no part":     {func(p *v1.Pod) { p.Spec.Subdomain = "s" }, "web", ""},
		"long names are cut":       {func(p *v1.Pod) { p.Name = long }, strings.Repeat("a", 62), ""},
		"override":                 {func(p *v1.Pod) { p.Spec.HostnameOverride = ptr.To("a.b.c"); p.Spec.Hostname = "h" }, "a.b.c", ""},
		"host network has none":    {func(p *v1.Pod) { p.Spec.HostNetwork = true }, "", ""},
		"FQDN":                     {func(p *v1.Pod) { p.Spec.SetHostnameAsFQDN = ptr.To(true); p.Spec.Subdomain = "s" }, "web.s.prod.svc.cluster.local", ""},
		"FQDN without a subdomain": {func(p *v1.Pod) { p.Spec.SetHostnameAsFQDN = ptr.To(true) }, "web", ""},
		"FQDN too long": {func(p *v1.Pod) {
			p.Spec.SetHostnameAsFQDN, p.Spec.Subdomain, p.Name = ptr.To(true), "sub", strings.Repeat("n", 40)
		}, "", "has 67 characters, a host name at most 64"},
		"spec.hostname that is none": {func(p *v1.Pod) { p.Spec.Hostname = "A_b" }, "", `spec.hostname "A_b"`},
		"spec.subdomain is none":     {func(p *v1.Pod) { p.Spec.Subdomain = "A_b" }, "", `spec.subdomain "A_b"`},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := sandbox.Config(state(tc.change), 0, options)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, c.GetHostname())
		})
	}
}

func TestUserNamespacesAreRefused(t *testing.T) {
	users := func(host *bool) *runtimeapi.UserNamespace {
		got := build(t, func(p *v1.Pod) { p.Spec.HostUsers = host })
		return got.GetLinux().GetSecurityContext().GetNamespaceOptions().GetUsernsOptions()
	}
	require.Equal(t, runtimeapi.NamespaceMode_NODE, users(nil).GetMode())
	require.Equal(t, runtimeapi.NamespaceMode_NODE, users(ptr.To(true)).GetMode())
	require.Equal(t, runtimeapi.NamespaceMode_POD, users(ptr.To(false)).GetMode())
}

func TestPorts(t *testing.T) {
	c := build(t, func(p *v1.Pod) {
		p.Spec.InitContainers = []v1.Container{{Name: "i", Ports: []v1.ContainerPort{{ContainerPort: 1}}}}
		p.Spec.Containers = []v1.Container{
			{Name: "a", Ports: []v1.ContainerPort{
				{Name: "http", ContainerPort: 80, HostPort: 8080, HostIP: "127.0.0.1"},
				{Name: "again", ContainerPort: 80, HostPort: 8080, HostIP: "127.0.0.1", Protocol: v1.ProtocolTCP},
				{ContainerPort: 80, Protocol: v1.ProtocolUDP},
			}},
			{Name: "b", Ports: []v1.ContainerPort{{ContainerPort: 80, Protocol: v1.ProtocolSCTP}}},
		}
	})
	require.Empty(t, cmp.Diff([]*runtimeapi.PortMapping{
		{ContainerPort: 80, HostPort: 8080, HostIp: "127.0.0.1"},
		{ContainerPort: 80, Protocol: runtimeapi.Protocol_UDP},
		{ContainerPort: 80, Protocol: runtimeapi.Protocol_SCTP},
	}, c.GetPortMappings(), protocmp.Transform()))
}

func TestSecurity(t *testing.T) {
	c := build(t, func(p *v1.Pod) {
		p.Spec.HostNetwork, p.Spec.HostPID = true, true
		p.Spec.SecurityContext = &v1.PodSecurityContext{
			RunAsUser: ptr.To[int64](5), RunAsGroup: ptr.To[int64](6), FSGroup: ptr.To[int64](7), SupplementalGroups: []int64{8},
			SELinuxOptions: &v1.SELinuxOptions{Level: "s0"},
			SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeUnconfined},
			Sysctls:        []v1.Sysctl{{Name: "net/core/somaxconn", Value: "10"}, {Name: "kernel.shm_rmid_forced", Value: "1"}},
		}
		p.Spec.InitContainers = []v1.Container{{Name: "i", SecurityContext: &v1.SecurityContext{Privileged: ptr.To(true)}}}
	})
	require.Empty(t, cmp.Diff(&runtimeapi.LinuxSandboxSecurityContext{
		NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE, Pid: runtimeapi.NamespaceMode_NODE, UsernsOptions: nodeUsers},
		RunAsUser:        &runtimeapi.Int64Value{Value: 5}, RunAsGroup: &runtimeapi.Int64Value{Value: 6},
		SelinuxOptions:     &runtimeapi.SELinuxOption{Level: "s0"},
		SupplementalGroups: []int64{7, 8},
		Privileged:         true,
		Seccomp:            &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
	}, c.GetLinux().GetSecurityContext(), protocmp.Transform()))
	require.Equal(t, map[string]string{"net.core.somaxconn": "10", "kernel.shm_rmid_forced": "1"}, c.GetLinux().GetSysctls())
}

func TestResourcesAndOverhead(t *testing.T) {
	list := func(cpu, memory string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
	}
	c := build(t, func(p *v1.Pod) {
		p.Spec.Overhead = list("100m", "10Mi")
		p.Spec.Containers[0].Resources = v1.ResourceRequirements{Requests: list("500m", "1Mi"), Limits: list("1", "2Mi")}
		p.Spec.Containers = append(p.Spec.Containers, *p.Spec.Containers[0].DeepCopy())
	})
	require.Empty(t, cmp.Diff(&runtimeapi.LinuxContainerResources{
		CpuPeriod: 100000, CpuQuota: 200000, CpuShares: 1024, MemoryLimitInBytes: 4 << 20,
	}, c.GetLinux().GetResources(), protocmp.Transform()))
	require.Empty(t, cmp.Diff(&runtimeapi.LinuxContainerResources{
		CpuPeriod: 100000, CpuQuota: 10000, CpuShares: 102, MemoryLimitInBytes: 10 << 20,
	}, c.GetLinux().GetOverhead(), protocmp.Transform()))
}
