package manifest

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// oddity is what a valid pod says and hardly means.
type oddity struct{ field, says string }

// oddities are what the API server lets pass, and what then never works: a
// probe or hook of a port without a name, an image that no runtime
// can read, a grace period below zero. A container may listen on ports that
// it does not name, so a number is never odd.
func oddities(spec *v1.PodSpec) (out []oddity) {
	if g := spec.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		out = append(out, oddity{"spec.terminationGracePeriodSeconds", fmt.Sprintf(" is %d, which counts as 1", *g)})
	}
	for kind, list := range map[string][]v1.Container{"spec.initContainers": spec.InitContainers, "spec.containers": spec.Containers} {
		for i := range list {
			at := fmt.Sprintf("%s[%d]", kind, i)
			if strings.ContainsFunc(list[i].Image, unicode.IsSpace) {
				out = append(out, oddity{at + ".image", " has white space in it, so the container waits with InvalidImageName"})
			}
			out = append(out, oddPorts(at, &list[i])...)
		}
	}
	slices.SortFunc(out, func(a, b oddity) int { return strings.Compare(a.field, b.field) })
	return out
}

func oddPorts(at string, c *v1.Container) (out []oddity) {
	var names []string
	for _, p := range c.Ports {
		if p.Name != "" {
			names = append(names, p.Name)
		}
	}
	for field, port := range namedPorts(c) {
		if port.Type != intstr.String || slices.Contains(names, port.StrVal) {
			continue
		}
		says := fmt.Sprintf(" is %q, and the container has no port of that name, so this fails each time", port.StrVal)
		if len(names) > 0 {
			says += "; it has " + strings.Join(names, ", ")
		}
		out = append(out, oddity{at + "." + field, says})
	}
	return out
}

// namedPorts are the ports that probes and hooks of a container speak to.
func namedPorts(c *v1.Container) map[string]intstr.IntOrString {
	out := map[string]intstr.IntOrString{}
	add := func(field string, get *v1.HTTPGetAction, tcp *v1.TCPSocketAction) {
		if get != nil {
			out[field+".httpGet.port"] = get.Port
		}
		if tcp != nil {
			out[field+".tcpSocket.port"] = tcp.Port
		}
	}
	for field, p := range map[string]*v1.Probe{"livenessProbe": c.LivenessProbe, "readinessProbe": c.ReadinessProbe, "startupProbe": c.StartupProbe} {
		if p != nil {
			add(field, p.HTTPGet, p.TCPSocket)
		}
	}
	if c.Lifecycle != nil {
		for field, h := range map[string]*v1.LifecycleHandler{"lifecycle.postStart": c.Lifecycle.PostStart, "lifecycle.preStop": c.Lifecycle.PreStop} {
			if h != nil {
				add(field, h.HTTPGet, h.TCPSocket)
			}
		}
	}
	return out
}
