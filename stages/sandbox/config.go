package sandbox

import (
	"fmt"
	"maps"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/util/sysctl"
	resourcehelper "k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubectl/pkg/util/podutils"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

// maxFQDN is the longest name that the kernel takes as a host name.
const maxFQDN = 64

// Options are what of the node goes into a request.
type Options struct {
	LogRoot      string        // directory of pods' log directories
	CgroupParent string        // the pod's cgroup as the runtime's driver spells it
	Period       time.Duration // of the CFS quota; 0: CPU limits are not enforced
	DNS          DNS
	Users        *runtimeapi.UserNamespace // of a pod with a user namespace of its own
}

// Config returns the request for the sandbox of a pod, which calls that pull
// images and create containers carry too. It is pure: equal arguments give
// equal requests. The request shares maps with the pod and must not be changed.
func Config(s *pod.State, attempt uint32, o Options) (*runtimeapi.PodSandboxConfig, error) {
	p := s.Pod()
	host, err := hostname(p, o.DNS.ClusterDomain)
	if err != nil {
		return nil, err
	}
	dns, _ := o.DNS.For(p)
	return &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: p.Name, Namespace: p.Namespace, Uid: string(p.UID), Attempt: attempt},
		Hostname:     host,
		LogDirectory: LogDir(o.LogRoot, p),
		DnsConfig:    dns,
		PortMappings: ports(p),
		Labels:       labels(p),
		Annotations:  p.Annotations,
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent:    o.CgroupParent,
			SecurityContext: security(p, o.Users),
			Sysctls:         sysctls(p),
			Overhead:        crifact.LinuxResources(p.Spec.Overhead, p.Spec.Overhead, o.Period),
			Resources:       resources(p, o.Period),
		},
	}, nil
}

// LogDir returns the directory of a pod's logs.
func LogDir(root string, p *v1.Pod) string {
	return filepath.Join(root, p.Namespace+"_"+p.Name+"_"+string(p.UID))
}

// hostname returns the host name of the sandbox; a pod on the node's network
// has the node's.
func hostname(p *v1.Pod, clusterDomain string) (string, error) {
	host, domain, err := crifact.Hostname(p, clusterDomain)
	if err != nil || p.Spec.HostNetwork {
		return "", err
	}
	if p.Spec.SetHostnameAsFQDN == nil || !*p.Spec.SetHostnameAsFQDN || domain == "" {
		return host, nil
	}
	full := host + "." + domain
	if len(full) > maxFQDN {
		return "", fmt.Errorf("spec.setHostnameAsFQDN: %q has %d characters, a host name at most %d; shorten spec.hostname or spec.subdomain",
			full, len(full), maxFQDN)
	}
	return full, nil
}

func labels(p *v1.Pod) map[string]string {
	l := make(map[string]string, len(p.Labels)+3)
	maps.Copy(l, p.Labels)
	l[pod.LabelPodName] = p.Name
	l[pod.LabelPodNamespace] = p.Namespace
	l[pod.LabelPodUID] = string(p.UID)
	return l
}

// ports lists the ports of regular containers, each once per container.
func ports(p *v1.Pod) []*runtimeapi.PortMapping {
	var out []*runtimeapi.PortMapping
	for i := range p.Spec.Containers {
		seen := map[v1.ContainerPort]bool{}
		for _, port := range p.Spec.Containers[i].Ports {
			port.Name = ""
			if port.Protocol == "" {
				port.Protocol = v1.ProtocolTCP
			}
			if seen[port] {
				continue
			}
			seen[port] = true
			out = append(out, &runtimeapi.PortMapping{
				Protocol:      runtimeapi.Protocol(runtimeapi.Protocol_value[string(port.Protocol)]),
				ContainerPort: port.ContainerPort,
				HostPort:      port.HostPort,
				HostIp:        port.HostIP,
			})
		}
	}
	return out
}

func security(p *v1.Pod, users *runtimeapi.UserNamespace) *runtimeapi.LinuxSandboxSecurityContext {
	sc := p.Spec.SecurityContext
	if sc == nil {
		sc = &v1.PodSecurityContext{}
	}
	groups, policy := crifact.Groups(sc)
	namespaces := crifact.Namespaces(p)
	if users != nil {
		namespaces.UsernsOptions = users
	}
	return &runtimeapi.LinuxSandboxSecurityContext{
		NamespaceOptions:         namespaces,
		SelinuxOptions:           crifact.SELinux(sc.SELinuxOptions),
		RunAsUser:                crifact.Int64(sc.RunAsUser),
		RunAsGroup:               crifact.Int64(sc.RunAsGroup),
		SupplementalGroups:       groups,
		SupplementalGroupsPolicy: policy,
		Privileged:               privileged(p),
		Seccomp:                  &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
	}
}

// privileged reports whether any container of the pod is.
func privileged(p *v1.Pod) bool {
	return !podutils.VisitContainers(&p.Spec, podutils.AllContainers, func(c *v1.Container, _ podutils.ContainerType) bool {
		return c.SecurityContext == nil || c.SecurityContext.Privileged == nil || !*c.SecurityContext.Privileged
	})
}

func sysctls(p *v1.Pod) map[string]string {
	if p.Spec.SecurityContext == nil || len(p.Spec.SecurityContext.Sysctls) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, s := range p.Spec.SecurityContext.Sysctls {
		out[sysctl.NormalizeName(s.Name)] = s.Value
	}
	return out
}

// resources is the sum of the pod's containers, without its overhead.
func resources(p *v1.Pod, period time.Duration) *runtimeapi.LinuxContainerResources {
	o := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
	return crifact.LinuxResources(resourcehelper.PodRequests(p, o), resourcehelper.PodLimits(p, o), period)
}
