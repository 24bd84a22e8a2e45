package volume

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Hosts is what a pod's /etc/hosts says.
type Hosts struct {
	// HostNetwork: the node's file is shown instead of the fields Hostname,
	// Domain and IPs.
	HostNetwork bool
	Hostname    string
	Domain      string // empty: the name has none
	IPs         []string
	Aliases     []corev1.HostAlias
}

// The first lines by which other software knows the file.
const (
	managedHeader  = "# Kubernetes-managed hosts file.\n"
	hostNetHeader  = "# Kubernetes-managed hosts file (host network).\n"
	aliasesHeader  = "\n# Entries added by HostAliases.\n"
	localhostLines = "127.0.0.1\tlocalhost\n" +
		"::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"fe00::0\tip6-localnet\n" +
		"fe00::0\tip6-mcastprefix\n" +
		"fe00::1\tip6-allnodes\n" +
		"fe00::2\tip6-allrouters\n"
)

// Content returns the text of the file. node is the node's own file, which
// matters for pods on the host network only.
func (h Hosts) Content(node string) string {
	var b strings.Builder
	if h.HostNetwork {
		b.WriteString(hostNetHeader)
		b.WriteString(node)
	} else {
		b.WriteString(managedHeader)
		b.WriteString(localhostLines)
		names := h.Hostname
		if h.Domain != "" {
			names = h.Hostname + "." + h.Domain + "\t" + h.Hostname
		}
		for _, ip := range h.IPs {
			fmt.Fprintf(&b, "%s\t%s\n", ip, names)
		}
	}
	if len(h.Aliases) > 0 {
		b.WriteString(aliasesHeader)
	}
	for _, a := range h.Aliases {
		fmt.Fprintf(&b, "%s\t%s\n", a.IP, strings.Join(a.Hostnames, "\t"))
	}
	return b.String()
}
