// Package nodehttp holds what probes and lifecycle hooks have in common when
// they call a container over the network: which host and port they mean, how
// the request looks, and the rules by which it is sent.
//
// Numbers and rules are those of kubelet v1.37.2.
package nodehttp
