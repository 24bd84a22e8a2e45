package usage

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Memory returns what the machine has left of its memory: what is free, and
// files in the page cache that were not used of late. It reads meminfo below
// proc ("/proc"), which says the same on cgroup v1 and v2.
func Memory(proc string) (Amount, error) {
	const kB = 1024
	info, err := meminfo(filepath.Join(proc, "meminfo"))
	if err != nil {
		return Amount{}, fmt.Errorf("measuring memory: %w", err)
	}
	return Amount{Available: kB * (info["MemFree"] + info["Inactive(file)"]), Capacity: kB * info["MemTotal"]}, nil
}

func meminfo(path string) (map[string]int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	out := map[string]int64{}
	for s := bufio.NewScanner(f); s.Scan(); {
		name, rest, _ := strings.Cut(s.Text(), ":")
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		if n, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
			out[name] = n
		}
	}
	for _, name := range []string{"MemTotal", "MemFree", "Inactive(file)"} {
		if _, ok := out[name]; !ok {
			return nil, fmt.Errorf("%s has no line %s", path, name)
		}
	}
	return out, nil
}

// PIDs returns how many more processes and threads the kernel would start.
func PIDs(proc string) (Amount, error) {
	most := int64(0)
	for _, name := range []string{"pid_max", "threads-max"} {
		text, err := os.ReadFile(filepath.Join(proc, "sys/kernel", name))
		if err != nil {
			return Amount{}, fmt.Errorf("counting processes: %w", err)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			return Amount{}, fmt.Errorf("counting processes: %s: %w", name, err)
		}
		if most == 0 || n < most {
			most = n
		}
	}
	running, err := running(proc)
	if err != nil {
		return Amount{}, fmt.Errorf("counting processes: %w", err)
	}
	return Amount{Available: most - running, Capacity: most}, nil
}

// running is the second number of the fourth word of loadavg, as in "2/345".
func running(proc string) (int64, error) {
	path := filepath.Join(proc, "loadavg")
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 4 {
		return 0, fmt.Errorf("%s: %q is not what the kernel writes", path, text)
	}
	_, all, _ := strings.Cut(fields[3], "/")
	return strconv.ParseInt(all, 10, 64)
}

// Space returns the space of the file system that path is on, as it is for
// those who are not root.
func Space(path string) (Filesystem, error) {
	var fs unix.Statfs_t
	var st unix.Stat_t
	err := unix.Statfs(path, &fs)
	if err == nil {
		err = unix.Stat(path, &st)
	}
	if err != nil {
		return Filesystem{}, fmt.Errorf("measuring the file system of %s: %w", path, err)
	}
	return Filesystem{
		Bytes:  Amount{Available: int64(fs.Bavail) * fs.Frsize, Capacity: int64(fs.Blocks) * fs.Frsize}, //nolint:gosec // the kernel's numbers
		Inodes: Amount{Available: int64(fs.Ffree), Capacity: int64(fs.Files)},                           //nolint:gosec // the kernel's numbers
		Device: st.Dev,
	}, nil
}
