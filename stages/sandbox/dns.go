package sandbox

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// What resolvers read of a resolv.conf, and the kubelet passes on (v1.37.2).
const (
	maxServers     = 3
	maxSearches    = 32
	maxSearchChars = 2048
)

// DNS is what the node knows of name servers.
type DNS struct {
	ClusterServers []string
	ClusterDomain  string
	// Host is what the node's resolv.conf says; nil where the node is
	// configured to have none.
	Host    *runtimeapi.DNSConfig
	NodeIPs []string // primary first
}

// Warning is a reason and a message for an event.
type Warning struct{ Reason, Message string }

// For returns what is written into the resolv.conf of a pod's containers, and
// what there is to warn about. It is pure.
func (d DNS) For(p *v1.Pod) (*runtimeapi.DNSConfig, []Warning) {
	var warnings []Warning
	out := &runtimeapi.DNSConfig{}
	policy := p.Spec.DNSPolicy
	cluster := policy == v1.DNSClusterFirstWithHostNet || (!p.Spec.HostNetwork && (policy == v1.DNSClusterFirst || policy == ""))
	switch {
	case policy == v1.DNSNone:
	case cluster && len(d.ClusterServers) > 0:
		out = d.cluster(p)
	case policy == v1.DNSClusterFirstWithHostNet: // ClusterFirst is the default: nobody asked for it
		warnings = append(warnings, Warning{"MissingClusterDNS", fmt.Sprintf(
			"no clusterDNS is configured on this node, so the DNS policy %q of the pod works as \"Default\"", policy)})
		out = d.host()
	default:
		out = d.host()
	}
	if c := p.Spec.DNSConfig; c != nil {
		out.Servers = unique(out.Servers, c.Nameservers)
		out.Searches = unique(out.Searches, c.Searches)
		out.Options = mergeOptions(out.Options, c.Options)
	}
	return out, append(warnings, limit(out)...)
}

func (d DNS) cluster(p *v1.Pod) *runtimeapi.DNSConfig {
	out := &runtimeapi.DNSConfig{Servers: unique(d.ClusterServers), Options: []string{"ndots:5"}}
	var own []string
	if d.ClusterDomain != "" {
		own = []string{p.Namespace + ".svc." + d.ClusterDomain, "svc." + d.ClusterDomain, d.ClusterDomain}
	}
	out.Searches = unique(own, d.Host.GetSearches())
	return out
}

// host is the node's resolv.conf; without one, a resolver on loopback of the
// node's address family.
func (d DNS) host() *runtimeapi.DNSConfig {
	if d.Host != nil {
		return &runtimeapi.DNSConfig{
			Servers: unique(d.Host.Servers), Searches: unique(d.Host.Searches), Options: unique(d.Host.Options),
		}
	}
	out := &runtimeapi.DNSConfig{Searches: []string{"."}}
	for _, ip := range d.NodeIPs {
		if strings.Contains(ip, ":") {
			out.Servers = unique(out.Servers, []string{"::1"})
		} else {
			out.Servers = unique(out.Servers, []string{"127.0.0.1"})
		}
	}
	if len(out.Servers) == 0 {
		out.Servers = []string{"127.0.0.1"}
	}
	return out
}

// unique joins lists, keeping the first of equal entries. The result is new.
func unique(lists ...[]string) []string {
	var out []string
	for _, l := range lists {
		for _, v := range l {
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	return out
}

// mergeOptions adds options to those there are; one of the same name gives way.
func mergeOptions(have []string, add []v1.PodDNSConfigOption) []string {
	for _, o := range add {
		if o.Name == "" {
			continue
		}
		text := o.Name
		if o.Value != nil && *o.Value != "" {
			text += ":" + *o.Value
		}
		i := slices.IndexFunc(have, func(h string) bool {
			name, _, _ := strings.Cut(h, ":")
			return name == o.Name
		})
		if i < 0 {
			have = append(have, text)
		} else {
			have[i] = text
		}
	}
	return have
}

// limit drops what resolvers would not read, from the end.
func limit(c *runtimeapi.DNSConfig) []Warning {
	var warnings []Warning
	if len(c.Servers) > maxServers {
		c.Servers = c.Servers[:maxServers]
		warnings = append(warnings, Warning{"DNSConfigForming", "Nameserver limits were exceeded, some nameservers have been omitted, " +
			"the applied nameserver line is: " + strings.Join(c.Servers, " ")})
	}
	all := len(c.Searches)
	c.Searches = slices.DeleteFunc(c.Searches, func(s string) bool { return len(s) > validation.DNS1123SubdomainMaxLength })
	c.Searches = c.Searches[:min(len(c.Searches), maxSearches)]
	for len(strings.Join(c.Searches, " ")) > maxSearchChars {
		c.Searches = c.Searches[:len(c.Searches)-1]
	}
	if len(c.Searches) < all {
		warnings = append(warnings, Warning{"DNSConfigForming", "Search Line limits were exceeded, some search paths have been omitted, " +
			"the applied search line is: " + strings.Join(c.Searches, " ")})
	}
	return warnings
}

// ParseResolvConf reads the text of a resolv.conf. As resolvers do, it lets the
// last search line win and skips what it does not know.
func ParseResolvConf(text string) (*runtimeapi.DNSConfig, error) {
	out := &runtimeapi.DNSConfig{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.ContainsAny(fields[0][:1], "#;") {
			continue
		}
		rest := fields[1:]
		switch fields[0] {
		case "nameserver":
			if len(rest) == 0 {
				return nil, fmt.Errorf("line %d: nameserver without an address", n)
			}
			out.Servers = append(out.Servers, rest[0])
		case "search":
			out.Searches = nil
			for _, s := range rest {
				if s = strings.TrimSuffix(s, "."); s != "" {
					out.Searches = append(out.Searches, s)
				}
			}
		case "options":
			for _, o := range rest {
				name, value, _ := strings.Cut(o, ":")
				out.Options = mergeOptions(out.Options, []v1.PodDNSConfigOption{{Name: name, Value: &value}})
			}
		}
	}
	return out, nil
}
