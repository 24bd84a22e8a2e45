package app

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/flowlet/flowlet/internal/config"
	"github.com/flowlet/flowlet/stages/admit"
	"github.com/flowlet/flowlet/stages/cgroup"
	"github.com/flowlet/flowlet/stages/container"
	"github.com/flowlet/flowlet/stages/image"
	"github.com/flowlet/flowlet/stages/node"
	"github.com/flowlet/flowlet/stages/sandbox"
	"github.com/flowlet/flowlet/stages/volume"
)

// Where the ecosystem's tools look for links to containers' logs.
const containerLogs = "/var/log/containers"

// node is this machine as the configuration wants it used; with a simulated
// runtime nothing of it is touched.
func (d *daemon) node() (Node, error) {
	c, k := d.config, d.config.Kubelet
	capacity, err := admit.Capacity(c.RootDir, maxPods(k))
	if err != nil {
		return Node{}, fmt.Errorf("reading this machine's capacity: %w", err)
	}
	allocatable := allocatable(capacity, c)
	ips := addresses()
	n := Node{IPs: ips}
	n.Admission = admit.Config{
		AppArmor:    d.simulated() || appArmor("/sys"),
		Allocatable: allocatable, NodeName: c.NodeName, Sysctls: append(admit.SafeSysctls(), k.AllowedUnsafeSysctls...),
		Labels: map[string]string{
			v1.LabelHostname: c.NodeName, v1.LabelOSStable: runtime.GOOS, v1.LabelArchStable: runtime.GOARCH,
		},
	}
	tree, err := cgroup.Detect()
	if err != nil {
		return Node{}, fmt.Errorf("reading this machine's cgroups: %w", err)
	}
	if n.Thresholds, err = thresholds(c); err != nil {
		return Node{}, err
	}
	n.Sandbox = sandbox.Settings{
		LogRoot: d.logRoot(), ClusterDNS: k.ClusterDNS, ClusterDomain: k.ClusterDomain, ResolvConf: *k.ResolverConfig, NodeIPs: ips,
	}
	n.Container = container.Settings{
		NodeIPs: ips, Memory: capacity.Memory().Value(), Allocatable: allocatable, CgroupV2: tree.V2, SwapLimit: tree.LimitsSwap(), HugePageSizes: cgroup.PageSizes(),
		OOMGroup: tree.V2 && (k.SingleProcessOOMKill == nil || !*k.SingleProcessOOMKill), ClusterDomain: k.ClusterDomain,
		SeccompDir: filepath.Join(c.RootDir, "seccomp"), SeccompDefault: *k.SeccompDefault, LinkDir: containerLogs,
	}
	n.Container.StopSignals, n.Container.EnvFiles = c.Gates.Enabled("ContainerStopSignals"), c.Gates.Enabled("EnvFiles")
	memory := memoryQoS(c, tree.V2)
	n.Container.MemoryQoS = container.MemoryQoS{On: memory.On, Reserved: memory.Reserves(), High: memory.High}
	n.Container.LimitedSwap = k.MemorySwap.SwapBehavior == "LimitedSwap"
	if n.Container.Swap, err = admit.Swap(); err != nil {
		return Node{}, fmt.Errorf("reading this machine's swap: %w", err)
	}
	if *k.CPUCFSQuota {
		n.Sandbox.Period, n.Container.Period = cfsPeriod(c), cfsPeriod(c)
	}
	if d.simulated() {
		n.Container.LinkDir = ""
		n.Cgroups, n.Dirs, n.Volumes = NoCgroups{}, SimDirs{Logs: d.logRoot()}, NoVolumes{}
		n.Usage = SimUsage{Sim: d.sim, Memory: capacity.Memory().Value()}
		return n, nil
	}
	d.machine(&n, tree, allocatable)
	return n, nil
}

// userNamespaces cuts the IDs of pods with a user namespace of their own from
// what the machine gives the user kubelet, as the kubelet does.
func userNamespaces(c *config.Config) *sandbox.UserNamespaces {
	perPod := uint32(sandbox.DefaultIDsPerPod)
	if u := c.Kubelet.UserNamespaces; u != nil && u.IDsPerPod != nil && *u.IDsPerPod > 0 {
		perPod = uint32(*u.IDsPerPod) //nolint:gosec // validated
	}
	return &sandbox.UserNamespaces{
		PodsDir: filepath.Join(c.RootDir, "pods"), PerPod: perPod,
		Range: func() (sandbox.IDRange, error) {
			return sandbox.IDRangeOf("kubelet", "/etc/subuid", "/etc/subgid", perPod)
		},
	}
}

// maxPods is how many pods may be on the node; 0 means no limit.
func maxPods(k *kubeletconfig.KubeletConfiguration) int64 {
	most := int64(k.MaxPods)
	if k.PodsPerCore > 0 {
		most = min(most, int64(k.PodsPerCore)*int64(runtime.NumCPU()))
	}
	return most
}

// machine adds the parts that change the machine.
func (d *daemon) machine(n *Node, tree cgroup.Tree, allocatable v1.ResourceList) {
	cgroups := &cgroups{config: d.config, runtime: d.runtime, tree: tree, allocatable: allocatable, log: d.log}
	d.cgroups = cgroups
	cgroups.pods = func() []*v1.Pod { return d.agent.roomy() }
	vc := volume.Config{
		RootDir: d.config.RootDir, LogRoot: d.config.Kubelet.PodLogsDir, Mounter: volume.Syscalls{},
		Allocatable: allocatable, NodeMemory: allocatable.Memory().Value(), PodMemory: cgroups.memory,
	}
	n.Sandbox.Users = userNamespaces(d.config)
	made, volumes := volume.NewDirs(vc), volume.New(vc)
	n.Cgroups, n.Dirs, n.Volumes = cgroups, dirs{made}, volumes
	n.Usage = machineUsage{root: d.config.RootDir, runtime: d.runtime, dirs: made, volumes: volumes, cgroups: cgroups}
	n.Orphans = &node.OrphanConfig{
		Dirs: made, Volumes: volumes, Cgroups: cgroups, LinkDir: n.Container.LinkDir, LogRoot: d.config.Kubelet.PodLogsDir,
	}
	cwd, err := os.Getwd()
	if err != nil {
		cwd = "" // one place less to look
	}
	n.Keys = image.NewNodeKeys(d.config.RootDir, cwd, os.Getenv("HOME"))
	n.Logs = LogLimits(d.config)
}

func allocatable(capacity v1.ResourceList, c *config.Config) v1.ResourceList {
	out := maps.Clone(capacity)
	for name, r := range c.Reserved() {
		if q, ok := out[name]; ok {
			q.Sub(r)
			out[name] = q
		}
	}
	memory := out[v1.ResourceMemory]
	for name, q := range capacity {
		if strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
			memory.Sub(q) // the kernel gives it to nothing else
		}
	}
	out[v1.ResourceMemory] = memory
	return out
}

// appArmor reports whether the kernel enforces AppArmor profiles.
func appArmor(sys string) bool {
	if _, err := os.Stat(filepath.Join(sys, "kernel/security/apparmor")); err != nil {
		return false
	}
	text, err := os.ReadFile(filepath.Join(sys, "module/apparmor/parameters/enabled"))
	return err == nil && strings.HasPrefix(string(text), "Y")
}

// swapOn reports whether the kernel lists a swap device besides the header.
func swapOn() bool {
	data, err := os.ReadFile("/proc/swaps")
	return err == nil && strings.Count(strings.TrimSpace(string(data)), "\n") > 0
}

// addresses are the node's own: the one that its default route uses.
func addresses() []string {
	// No packet is sent: connecting a UDP socket only picks a source address.
	c, err := net.Dial("udp", "192.0.2.1:9")
	if err != nil {
		return []string{"127.0.0.1"}
	}
	defer c.Close()
	host, _, err := net.SplitHostPort(c.LocalAddr().String())
	if err != nil {
		return []string{"127.0.0.1"}
	}
	return []string{host}
}

// dirs gives volume.Dirs the words of package container.
type dirs struct{ *volume.Dirs }

func (d dirs) WriteHosts(uid types.UID, h container.Hosts) error {
	return d.Dirs.WriteHosts(uid, volume.Hosts(h))
}
