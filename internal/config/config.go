package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-base/featuregate"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/flowlet/flowlet/dag"
)

// Config is the whole configuration of one agent. It is complete and valid,
// and read-only: nobody changes it or what it points to after Load.
type Config struct {
	// NodeName is trimmed and lower-cased.
	NodeName string
	// RootDir is absolute and clean.
	RootDir string
	// PrepareHost: the agent may set what pods need of the machine.
	PrepareHost bool
	// Kubelet holds the effective values: defaulted, every pointer that has a
	// default is set.
	Kubelet *kubeletconfig.KubeletConfiguration
	// Gates answers for every feature gate of kubelet v1.37.2.
	Gates featuregate.FeatureGate
	// Policy holds the class rows: defaults, what the kubelet's fields say
	// about them, and the policy file on top.
	Policy dag.Policy
	// PolicyFile is absolute, or empty.
	PolicyFile string
	// Dead says how many containers that have ended are kept.
	Dead DeadContainers
	// Warnings are complete sentences for the user, one per finding.
	Warnings []string

	origins map[string]string
}

// Explicit reports whether the user set the field at that path, such as
// "serializeImagePulls" or "logging.format", and where: the file's path or the
// flag's name. A zero value that the kubelet takes for "use the default"
// counts as not set.
func (c *Config) Explicit(path string) (origin string, set bool) {
	origin, set = c.origins[path]
	return origin, set
}

// RuntimeEndpoint returns the endpoint of the container runtime that the user
// chose, or "" when the usual sockets are to be tried.
func (c *Config) RuntimeEndpoint() string {
	if _, set := c.Explicit("containerRuntimeEndpoint"); !set {
		return ""
	}
	return c.Kubelet.ContainerRuntimeEndpoint
}

// SharedPullQueue reports that all image pulls of the node wait in the one
// class "image" instead of one queue per registry: serializeImagePulls and
// maxParallelImagePulls, when the user set them, count for the whole node.
func (c *Config) SharedPullQueue() bool {
	_, parallel := c.Explicit("maxParallelImagePulls")
	return parallel || c.serialPulls()
}

func (c *Config) serialPulls() bool {
	_, set := c.Explicit("serializeImagePulls")
	return set && *c.Kubelet.SerializeImagePulls
}

// PullQPS returns the limit on the rate of image pulls, or 0 for none: unlike
// the kubelet's default of 5 per second, no rate is enforced unless the user
// asked for one.
func (c *Config) PullQPS() (qps, burst int32) {
	if _, set := c.Explicit("registryPullQPS"); !set {
		return 0, 0
	}
	return *c.Kubelet.RegistryPullQPS, c.Kubelet.RegistryBurst
}

// Reserved returns what is kept from pods: the sum of systemReserved and
// kubeReserved, by the names cpu, memory, ephemeral-storage and pid.
func (c *Config) Reserved() corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, reserved := range []map[string]string{c.Kubelet.SystemReserved, c.Kubelet.KubeReserved} {
		for name, text := range reserved {
			sum := out[corev1.ResourceName(name)]
			sum.Add(resource.MustParse(text)) // Load has parsed it
			out[corev1.ResourceName(name)] = sum
		}
	}
	return out
}

// Part is a part of the machine that is no pod's and is held to what is
// reserved for it.
type Part struct {
	Field    string // that names its cgroup
	Cgroup   string
	Reserved corev1.ResourceList // cpu alone where only that is enforced
}

// EnforcedParts returns the parts that enforceNodeAllocatable names.
func (c *Config) EnforcedParts() []Part {
	k := c.Kubelet
	var out []Part
	for _, part := range []struct {
		key, field, cgroup string
		reserved           map[string]string
	}{
		{"system-reserved", "systemReservedCgroup", k.SystemReservedCgroup, k.SystemReserved},
		{"kube-reserved", "kubeReservedCgroup", k.KubeReservedCgroup, k.KubeReserved},
	} {
		all := slices.Contains(k.EnforceNodeAllocatable, part.key)
		if !all && !slices.Contains(k.EnforceNodeAllocatable, part.key+"-compressible") {
			continue
		}
		p := Part{Field: part.field, Cgroup: part.cgroup, Reserved: corev1.ResourceList{}}
		for name, text := range part.reserved {
			if all || name == string(corev1.ResourceCPU) {
				p.Reserved[corev1.ResourceName(name)] = resource.MustParse(text) // Load has parsed it
			}
		}
		out = append(out, p)
	}
	return out
}

// EnforcesPods reports whether all pods together are held to what is not
// reserved (enforceNodeAllocatable has "pods").
func (c *Config) EnforcesPods() bool {
	return slices.Contains(c.Kubelet.EnforceNodeAllocatable, "pods")
}

// Host is what the agent saw of the machine.
type Host struct {
	CgroupV2 bool
	SwapOn   bool
}

// CheckHost returns an error when the configuration forbids to run on such a
// host. The error names the field that allows it.
func (c *Config) CheckHost(h Host) error {
	var errs []error
	k := c.Kubelet
	if !h.CgroupV2 && *k.FailCgroupV1 {
		errs = append(errs, errors.New("failCgroupV1: this host uses cgroup v1, which the kubelet refuses by default; set failCgroupV1: false (--fail-cgroupv1=false) to run on it"))
	}
	if !h.CgroupV2 && k.SingleProcessOOMKill != nil && !*k.SingleProcessOOMKill {
		errs = append(errs, errors.New("singleProcessOOMKill: may not be false on a host with cgroup v1; remove it"))
	}
	if h.SwapOn && *k.FailSwapOn {
		errs = append(errs, errors.New("failSwapOn: swap is on; turn it off (swapoff -a), or set failSwapOn: false (--fail-swap-on=false)"))
	}
	return errors.Join(errs...)
}

// Load reads the files that the flags name, merges, defaults and validates.
// The error, if any, lists all findings, each with the file or flag and the
// path of the field. It reads the files and the host name and has no other
// effect.
func Load(flags *Flags) (*Config, error) {
	if err := flags.check(); err != nil {
		return nil, err
	}
	l, err := loadKubelet(flags)
	if err != nil {
		return nil, err
	}
	c := &Config{PrepareHost: flags.PrepareHost, Dead: flags.Dead, Kubelet: l.kubelet, Gates: l.gates, origins: l.origins}
	if c.NodeName, err = nodeName(flags.HostnameOverride); err != nil {
		return nil, err
	}
	if c.RootDir, err = absolute("--root-dir", flags.RootDir); err != nil {
		return nil, err
	}
	if c.PolicyFile, err = absolute("--policy", flags.PolicyFile); err != nil {
		return nil, err
	}
	if c.Policy, err = c.loadPolicy(); err != nil {
		return nil, err
	}
	c.Warnings = slices.Concat(l.warnings, flags.warnings(), unsupported(c.origins))
	return c, nil
}

// unsupported gives one warning for each field that was set and has no effect
// yet, in the order of their paths.
func unsupported(origins map[string]string) []string {
	notYet := fieldSet(fieldsNotYet)
	var out []string
	for _, path := range slices.Sorted(maps.Keys(origins)) {
		if notYet[path] {
			out = append(out, fmt.Sprintf("%s: %s is not supported yet and has no effect", origins[path], path))
		}
	}
	return out
}
