package inside

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// mounts reads mountinfo: ID, parent, device, root, point, options, tags…, "-", type, source, options of the file system.
func mounts(info string) []Mount {
	var out []Mount
	for line := range strings.Lines(info) {
		before, after, _ := strings.Cut(strings.TrimSpace(line), " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if len(f) < 6 || len(g) < 3 {
			continue
		}
		out = append(out, Mount{
			Root: f[3], Point: f[4], Options: strings.Split(f[5], ","), Propagation: f[6:],
			Type: g[0], Source: g[1], Super: strings.Split(g[2], ","),
		})
	}
	return out
}

func spaces() map[string]string {
	out := map[string]string{}
	for _, name := range names("/proc/self/ns") {
		out[name], _ = os.Readlink("/proc/self/ns/" + name)
	}
	return out
}

func terminals() []bool {
	out := make([]bool, 3)
	for fd := range out {
		var settings [64]byte // more than any termios
		_, _, err := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.TCGETS, uintptr(unsafe.Pointer(&settings)))
		out[fd] = err == 0
	}
	return out
}

func priority() string {
	n, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		return err.Error()
	}
	return strconv.Itoa(n)
}

func processes() []string {
	var out []string
	for _, name := range names("/proc") {
		if _, err := strconv.Atoi(name); err == nil {
			out = append(out, read("/proc/"+name+"/comm"))
		}
	}
	return out
}

func cgroups() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(read("/proc/self/cgroup")) {
		if f := strings.SplitN(strings.TrimSpace(line), ":", 3); len(f) == 3 {
			out[f[1]] = f[2]
		}
	}
	return out
}

// limits are the values of the process's own cgroup, which runtimes mount at the usual place: each controller's of v1 in a
// directory, those of v2 beside each other.
func limits() map[string]string {
	out := map[string]string{}
	for _, pattern := range []string{
		"*/cpu.shares", "*/cpu.cfs_quota_us", "*/cpu.cfs_period_us", "*/memory.limit_in_bytes", "*/memory.memsw.limit_in_bytes",
		"*/pids.max", "*/hugetlb.*.limit_in_bytes", "*/cpuset.cpus",
		"cpu.weight", "cpu.max", "memory.max", "memory.min", "memory.low", "memory.high", "memory.swap.max", "memory.oom.group", "pids.max",
	} {
		found, _ := filepath.Glob("/sys/fs/cgroup/" + pattern)
		for _, path := range found {
			out[filepath.Base(path)] = read(path)
		}
	}
	return out
}

func look(path string) Path {
	var p Path
	p.Link, _ = os.Readlink(path)
	info, err := os.Stat(path)
	if err != nil {
		p.Error = err.Error()
		return p
	}
	const mayWrite = 2
	p.Mode, p.Size, p.Writable = info.Mode().String(), info.Size(), syscall.Access(path, mayWrite) == nil
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		p.UID, p.GID = s.Uid, s.Gid
	}
	switch {
	case info.IsDir():
		p.Names = names(path)
	case info.Mode().IsRegular():
		if p.Text, err = head(path); err != nil {
			p.Error = err.Error()
		}
	}
	return p
}

func head(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, 64<<10))
	return string(b), err
}
