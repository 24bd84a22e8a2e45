package manifest

import (
	"fmt"
	"net/netip"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
)

// Limits of the name resolution in libc, which the API keeps.
const (
	maxNameservers     = 3
	maxSearchDomains   = 32
	maxSearchListChars = 2048
	maxHostname        = 64
)

// dns checks names and name resolution inside the pod.
func (v *validator) dns(at *field.Path) {
	s := v.spec
	oneOf(v, at.Child("dnsPolicy"), s.DNSPolicy, v1.DNSClusterFirstWithHostNet, v1.DNSClusterFirst, v1.DNSDefault, v1.DNSNone)
	v.dnsConfig(s.DNSConfig, at.Child("dnsConfig"))
	for child, value := range map[string]string{"hostname": s.Hostname, "subdomain": s.Subdomain} {
		if value != "" {
			v.invalid(at.Child(child), value, validation.IsDNS1123Label(value)...)
		}
	}
	if s.HostnameOverride != nil {
		v.hostnameOverride(*s.HostnameOverride, at.Child("hostnameOverride"))
	}
	for i, alias := range s.HostAliases {
		at := at.Child("hostAliases").Index(i)
		v.ip(alias.IP, at.Child("ip"))
		for j, name := range alias.Hostnames {
			v.invalid(at.Child("hostnames").Index(j), name, validation.IsDNS1123Subdomain(name)...)
		}
	}
}

func (v *validator) hostnameOverride(name string, at *field.Path) {
	v.forbid(v.spec.SetHostnameAsFQDN != nil && *v.spec.SetHostnameAsFQDN, at, "may not be specified when setHostnameAsFQDN is true")
	v.forbid(v.spec.HostNetwork, at, "may not be specified when hostNetwork is true")
	if len(name) > maxHostname {
		v.add(field.TooLong(at, name, maxHostname))
	}
	v.invalid(at, name, validation.IsDNS1123Subdomain(name)...)
}

func (v *validator) dnsConfig(c *v1.PodDNSConfig, at *field.Path) {
	if v.spec.DNSPolicy == v1.DNSNone {
		const need = "must provide at least one nameserver when `dnsPolicy` is None"
		if !v.require(c != nil, at, need) || !v.require(len(c.Nameservers) > 0, at.Child("nameservers"), need) {
			return
		}
	}
	if c == nil {
		return
	}
	if len(c.Nameservers) > maxNameservers {
		v.invalid(at.Child("nameservers"), c.Nameservers, fmt.Sprintf("must not have more than %d nameservers", maxNameservers))
	}
	for i, server := range c.Nameservers {
		v.ip(server, at.Child("nameservers").Index(i))
	}
	if len(c.Searches) > maxSearchDomains {
		v.invalid(at.Child("searches"), len(c.Searches), fmt.Sprintf("must not have more than %d search paths", maxSearchDomains))
	}
	if len(strings.Join(c.Searches, " ")) > maxSearchListChars {
		v.invalid(at.Child("searches"), len(c.Searches), fmt.Sprintf("must not have more than %d characters (including spaces) in the search list", maxSearchListChars))
	}
	for i, search := range c.Searches {
		if search != "." {
			v.invalid(at.Child("searches").Index(i), search, validation.IsDNS1123SubdomainWithUnderscore(strings.TrimSuffix(search, "."))...)
		}
	}
	for i, option := range c.Options {
		v.require(option.Name != "", at.Child("options").Index(i), "must not be empty")
	}
}

// ip takes the old spellings too (leading zeros, IPv4 in IPv6), as the API
// does in fields that are older than its strict check.
func (v *validator) ip(value string, at *field.Path) {
	if _, err := netip.ParseAddr(value); err != nil && netutils.ParseIPSloppy(value) == nil {
		v.invalid(at, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
	}
}
