package crifact

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Hostname returns what a pod calls itself: its name, or what its spec says
// instead, cut to one DNS label; and the domain where it has a subdomain.
func Hostname(p *v1.Pod, clusterDomain string) (host, domain string, err error) {
	if o := p.Spec.HostnameOverride; o != nil && *o != "" {
		return label(*o), "", nil
	}
	host = p.Name
	if p.Spec.Hostname != "" {
		host = p.Spec.Hostname
		if why := validation.IsDNS1123Label(host); len(why) > 0 {
			return "", "", fmt.Errorf("spec.hostname %q: %s", host, strings.Join(why, ", "))
		}
	}
	if sub := p.Spec.Subdomain; sub != "" {
		if why := validation.IsDNS1123Label(sub); len(why) > 0 {
			return "", "", fmt.Errorf("spec.subdomain %q: %s", sub, strings.Join(why, ", "))
		}
		domain = strings.TrimSuffix(fmt.Sprintf("%s.%s.svc.%s", sub, p.Namespace, clusterDomain), ".")
	}
	return label(host), domain, nil
}

// label cuts a name to what the kernel and DNS take as one label.
func label(name string) string {
	if len(name) <= validation.DNS1123LabelMaxLength {
		return name
	}
	return strings.TrimRight(name[:validation.DNS1123LabelMaxLength], "-.")
}
