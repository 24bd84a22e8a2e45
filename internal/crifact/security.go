package crifact

import (
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Namespaces returns which namespaces a pod's containers share with the node
// and with each other; sandbox and containers are given the same. Which IDs a
// user namespace of the pod's own has is for the caller to add.
func Namespaces(p *v1.Pod) *runtimeapi.NamespaceOption {
	n := &runtimeapi.NamespaceOption{
		Network: runtimeapi.NamespaceMode_POD,
		Ipc:     runtimeapi.NamespaceMode_POD,
		Pid:     runtimeapi.NamespaceMode_CONTAINER,

		UsernsOptions: &runtimeapi.UserNamespace{Mode: runtimeapi.NamespaceMode_NODE},
	}
	if OwnUsers(p) {
		n.UsernsOptions.Mode = runtimeapi.NamespaceMode_POD
	}
	if p.Spec.HostNetwork {
		n.Network = runtimeapi.NamespaceMode_NODE
	}
	if p.Spec.HostIPC {
		n.Ipc = runtimeapi.NamespaceMode_NODE
	}
	switch {
	case p.Spec.HostPID:
		n.Pid = runtimeapi.NamespaceMode_NODE
	case p.Spec.ShareProcessNamespace != nil && *p.Spec.ShareProcessNamespace:
		n.Pid = runtimeapi.NamespaceMode_POD
	}
	return n
}

// OwnUsers reports whether a pod has a user namespace of its own.
func OwnUsers(p *v1.Pod) bool { return p.Spec.HostUsers != nil && !*p.Spec.HostUsers }

// Int64 returns v as the runtime is told it; nil stays nil.
func Int64(v *int64) *runtimeapi.Int64Value {
	if v == nil {
		return nil
	}
	return &runtimeapi.Int64Value{Value: *v}
}

// SELinux returns o as the runtime is told it; nil stays nil.
func SELinux(o *v1.SELinuxOptions) *runtimeapi.SELinuxOption {
	if o == nil {
		return nil
	}
	return &runtimeapi.SELinuxOption{User: o.User, Role: o.Role, Type: o.Type, Level: o.Level}
}

// Groups returns the supplemental groups of every container of a pod, that of
// its volumes first, and how the groups of the image are treated.
func Groups(sc *v1.PodSecurityContext) ([]int64, runtimeapi.SupplementalGroupsPolicy) {
	policy := runtimeapi.SupplementalGroupsPolicy_Merge
	if sc == nil {
		return nil, policy
	}
	var groups []int64
	if sc.FSGroup != nil {
		groups = append(groups, *sc.FSGroup)
	}
	if p := sc.SupplementalGroupsPolicy; p != nil && *p == v1.SupplementalGroupsPolicyStrict {
		policy = runtimeapi.SupplementalGroupsPolicy_Strict
	}
	return append(groups, sc.SupplementalGroups...), policy
}
