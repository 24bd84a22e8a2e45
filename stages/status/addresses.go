package status

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

// addresses fills the addresses of node and pod. A pod on the node's network
// has the node's; any other keeps those of its last sandbox to the end, which
// after a restart of the agent only the state file may know. There
// is at most one address per family, first that of the node's own family.
func (c *computation) addresses() {
	if len(c.HostIPs) > 0 {
		c.out.HostIP = c.HostIPs[0]
		c.out.HostIPs = make([]v1.HostIP, len(c.HostIPs))
		for i, ip := range c.HostIPs {
			c.out.HostIPs[i].IP = ip
		}
	}
	ips := c.podIPs()
	if len(ips) > 0 {
		c.out.PodIP = ips[0]
		c.out.PodIPs = make([]v1.PodIP, len(ips))
		for i, ip := range ips {
			c.out.PodIPs[i].IP = ip
		}
	}
}

func (c *computation) podIPs() []string {
	if c.p.Spec.HostNetwork {
		if len(c.State.Sandboxes) == 0 {
			return nil
		}
		return c.HostIPs
	}
	for i := range c.State.Sandboxes {
		if ips := c.State.Sandboxes[i].IPs; len(ips) > 0 {
			return c.onePerFamily(ips)
		}
		if !c.State.Sandboxes[i].Gone {
			break // the newest has none yet, or no longer
		}
	}
	if c.State.Phase >= pod.Finishing {
		return c.onePerFamily(c.State.IPs)
	}
	return nil
}

func (c *computation) onePerFamily(ips []string) []string {
	if len(ips) <= 1 {
		return ips
	}
	v6First := len(c.HostIPs) > 0 && isIPv6(c.HostIPs[0])
	find := func(v6 bool) int { return slices.IndexFunc(ips, func(ip string) bool { return isIPv6(ip) == v6 }) }
	var out []string
	for _, v6 := range [2]bool{v6First, !v6First} {
		if i := find(v6); i >= 0 {
			out = append(out, ips[i])
		}
	}
	return out
}

func isIPv6(ip string) bool { return strings.Contains(ip, ":") }
