package admit

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/node/util/sysctl"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/flowlet/flowlet/dag"
)

// refusal is why the node does not take a pod, in the kubelet's words (v1.37.2).
type refusal struct{ reason, message string }

func refused(reason, format string, args ...any) *refusal {
	return &refusal{reason, fmt.Sprintf(format, args...)}
}

// node is a Config, ready to be asked.
type node struct {
	Config
	allocatable amounts
	object      *v1.Node // for the affinity helper
}

func newNode(c Config) node {
	return node{
		Config: c, allocatable: amountsOf(c.Allocatable),
		object: &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.NodeName, Labels: maps.Clone(c.Labels)}},
	}
}

// refuses checks what no other pod has to do with, before there is a look at
// the room.
func (n *node) refuses(p *v1.Pod) *refusal {
	for _, check := range []func(*v1.Pod) *refusal{n.pressure, n.sysctls, system, n.groups, n.appArmor} {
		if no := check(p); no != nil {
			return no
		}
	}
	return nil
}

func (n *node) sysctls(p *v1.Pod) *refusal {
	if p.Spec.SecurityContext == nil {
		return nil
	}
	const forbidden = "forbidden sysctl: "
	for _, s := range p.Spec.SecurityContext.Sysctls {
		name := sysctl.NormalizeName(s.Name)
		space, _, _ := sysctl.GetNamespace(name)
		switch {
		case space == sysctl.NetNamespace && p.Spec.HostNetwork:
			return refused("SysctlForbidden", forbidden+"%q not allowed with host net enabled", s.Name)
		case space == sysctl.IPCNamespace && p.Spec.HostIPC:
			return refused("SysctlForbidden", forbidden+"%q not allowed with host ipc enabled", s.Name)
		case space == sysctl.UserNamespace && (p.Spec.HostUsers == nil || *p.Spec.HostUsers):
			return refused("SysctlForbidden", forbidden+"%q not allowed with host user enabled", s.Name)
		case !n.allows(name):
			return refused("SysctlForbidden", forbidden+"%q not allowlisted", s.Name)
		}
	}
	return nil
}

func (n *node) allows(name string) bool {
	return slices.ContainsFunc(n.Sysctls, func(pattern string) bool {
		pattern = sysctl.NormalizeName(pattern)
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return pattern == name
	})
}

func system(p *v1.Pod) *refusal {
	if label, ok := p.Labels[v1.LabelOSStable]; ok && label != runtime.GOOS {
		return refused("PodOSSelectorNodeLabelDoesNotMatch",
			"Failed to admit pod as the `kubernetes.io/os` label doesn't match node label")
	}
	if p.Spec.OS != nil && string(p.Spec.OS.Name) != runtime.GOOS {
		return refused("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
	}
	return nil
}

func (n *node) groups(p *v1.Pod) *refusal {
	sc := p.Spec.SecurityContext
	if sc == nil || sc.SupplementalGroupsPolicy == nil || *sc.SupplementalGroupsPolicy != v1.SupplementalGroupsPolicyStrict {
		return nil
	}
	if n.StrictGroups != nil {
		if yes, known := n.StrictGroups(); yes || !known {
			return nil // Admit waits until it is known
		}
	}
	return refused("SupplementalGroupsPolicyNotSupported",
		"SupplementalGroupsPolicy=%s is not supported in this node", *sc.SupplementalGroupsPolicy)
}

// unknown is the error while what a pod asks of the runtime is not known yet:
// a rejection would be for good.
func (n *node) unknown(p *v1.Pod) error {
	sc := p.Spec.SecurityContext
	if n.StrictGroups == nil || sc == nil || sc.SupplementalGroupsPolicy == nil || *sc.SupplementalGroupsPolicy != v1.SupplementalGroupsPolicyStrict {
		return nil
	}
	if _, known := n.StrictGroups(); known {
		return nil
	}
	return dag.RetryAfter(errors.New("the container runtime has not told yet whether it supports supplementalGroupsPolicy Strict"), time.Second)
}

func (n *node) appArmor(p *v1.Pod) *refusal {
	if n.AppArmor || !wantsAppArmor(p) {
		return nil
	}
	return refused("AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host")
}

func wantsAppArmor(p *v1.Pod) bool {
	wants := func(a *v1.AppArmorProfile) bool { return a != nil && a.Type != v1.AppArmorProfileTypeUnconfined }
	if p.Spec.SecurityContext != nil && wants(p.Spec.SecurityContext.AppArmorProfile) {
		return true
	}
	for _, list := range [2][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if sc := list[i].SecurityContext; sc != nil && wants(sc.AppArmorProfile) {
				return true
			}
		}
	}
	return false
}

// lacks names the first resource that used leaves too little of: the number
// of pods, cpu, memory, ephemeral storage, then the others by name. Extended
// resources that the node does not have are somebody else's and left out.
func (n *node) lacks(used, request amounts) *refusal {
	short := func(name v1.ResourceName) *refusal {
		want := request[name]
		have, known := n.allocatable[name]
		switch {
		case want == 0 || (!known && (extended(name) || name == v1.ResourcePods)):
			return nil
		case used[name]+want <= have:
			return nil
		}
		return refused("OutOf"+string(name), "Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d",
			name, want, used[name], have)
	}
	first := [...]v1.ResourceName{v1.ResourcePods, v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage}
	for _, name := range first {
		if no := short(name); no != nil {
			return no
		}
	}
	for _, name := range slices.Sorted(maps.Keys(request)) {
		if no := short(name); no != nil {
			return no
		}
	}
	return nil
}

// mismatch checks whether the pod asks for another node.
func (n *node) mismatch(p *v1.Pod) *refusal {
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(n.object); err != nil || !ok {
		return refused("NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")
	}
	if p.Spec.NodeName != "" && p.Spec.NodeName != n.NodeName {
		return refused("NodeName", "Predicate NodeName failed: node(s) didn't match the requested node name")
	}
	return nil
}
