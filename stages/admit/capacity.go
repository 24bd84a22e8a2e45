package admit

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Capacity detects what this machine has: cpu, memory, ephemeral storage (the
// file system of the agent's root directory), huge pages of each size and,
// where limited, pods; pods 0 means no limit.
func Capacity(root string, pods int64) (v1.ResourceList, error) {
	list, err := capacity("/proc", root, pods)
	if err != nil {
		return nil, err
	}
	maps.Copy(list, hugePages("/sys/kernel/mm/hugepages"))
	return list, nil
}

// hugePages reads how many huge pages of each size the kernel keeps, from
// directories such as hugepages-2048kB.
func hugePages(sys string) v1.ResourceList {
	out := v1.ResourceList{}
	dirs, _ := filepath.Glob(filepath.Join(sys, "hugepages-*kB")) // a kernel without huge pages has none
	for _, dir := range dirs {
		var kB int64
		if _, err := fmt.Sscanf(filepath.Base(dir), "hugepages-%dkB", &kB); err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "nr_hugepages"))
		if err != nil {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			continue
		}
		size := resource.NewQuantity(kB<<10, resource.BinarySI)
		out[v1.ResourceName(v1.ResourceHugePagesPrefix+size.String())] = *resource.NewQuantity(n*kB<<10, resource.BinarySI)
	}
	return out
}

func capacity(proc, root string, pods int64) (v1.ResourceList, error) {
	memory, err := memTotal(filepath.Join(proc, "meminfo"))
	if err != nil {
		return nil, fmt.Errorf("detecting the machine's memory: %w", err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(root, &fs); err != nil {
		return nil, fmt.Errorf("detecting the ephemeral storage of %s: %w", root, err)
	}
	list := v1.ResourceList{
		v1.ResourceCPU:              *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		v1.ResourceMemory:           *resource.NewQuantity(memory, resource.BinarySI),
		v1.ResourceEphemeralStorage: *resource.NewQuantity(int64(fs.Blocks)*fs.Frsize, resource.BinarySI),
	}
	if pods > 0 {
		list[v1.ResourcePods] = *resource.NewQuantity(pods, resource.DecimalSI)
	}
	return list, nil
}

// Swap detects how much swap this machine has, in bytes.
func Swap() (int64, error) { return memInfo("/proc/meminfo", "SwapTotal:") }

func memTotal(path string) (int64, error) { return memInfo(path, "MemTotal:") }

// memInfo reads a line like "MemTotal:  123 kB", in bytes.
func memInfo(path, line string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if rest, ok := strings.CutPrefix(sc.Text(), line); ok {
			kB, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("%s: %s %w", path, line, err)
			}
			return kB << 10, nil
		}
	}
	return 0, fmt.Errorf("%s has no line %s", path, strings.TrimSuffix(line, ":"))
}

// SafeSysctls returns the sysctls that any pod may set, since this kernel keeps
// them apart and bounded (list of kubelet v1.37.2).
func SafeSysctls() []string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return safeSysctls("")
	}
	return safeSysctls(unix.ByteSliceToString(u.Release[:]))
}

// safeSysctls takes a kernel's release, such as "5.10.0-28-amd64".
func safeSysctls(release string) []string {
	out := []string{
		"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies",
		"net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start",
	}
	have := version(release)
	for _, since := range []struct {
		kernel int
		names  []string
	}{
		{version("3.16"), []string{"net.ipv4.ip_local_reserved_ports"}},
		{version("4.5"), []string{"net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes"}},
		{version("4.6"), []string{"net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_notsent_lowat"}},
		{version("4.15"), []string{"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_slow_start_after_idle"}},
	} {
		if have >= since.kernel {
			out = append(out, since.names...)
		}
	}
	return out
}

// version maps "4.15.0-x" to a number that compares; 0 if it is none.
func version(release string) int {
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return 0
	}
	return major*1000 + minor
}
