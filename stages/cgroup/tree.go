package cgroup

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"
)

// Tree is what the machine has of cgroups.
type Tree struct {
	V2 bool
	// Mounts maps each controller of v1 to its mount point. On v2 every
	// controller maps to the one mount point. In hybrid mode, v1 with a v2
	// hierarchy beside it, that one has no controller and an empty name: it
	// limits nothing, but runtimes put containers there, too.
	Mounts map[string]string
}

// unified is where cgroup v2 is mounted.
const unified = "/sys/fs/cgroup"

// hybrid is where cgroup v2 is mounted beside v1.
const hybrid = unified + "/unified"

// Detect reads the mounts of this machine.
func Detect() (Tree, error) {
	t := Tree{V2: cgroups.IsCgroup2UnifiedMode(), Mounts: map[string]string{}}
	if t.V2 {
		data, err := os.ReadFile(filepath.Join(unified, "cgroup.controllers"))
		if err != nil {
			return t, fmt.Errorf("looking for cgroup controllers: %w", err)
		}
		for name := range strings.FieldsSeq(string(data)) {
			t.Mounts[name] = unified
		}
		return t, nil
	}
	mounts, err := cgroups.GetCgroupMounts(false)
	if err != nil {
		return t, fmt.Errorf("looking for cgroup mounts: %w", err)
	}
	for _, m := range mounts {
		for _, name := range m.Subsystems {
			t.Mounts[strings.TrimPrefix(name, "name=")] = m.Mountpoint
		}
	}
	if len(t.Mounts) == 0 {
		return t, fmt.Errorf("no cgroup hierarchy is mounted below %s", unified)
	}
	if cgroups.IsCgroup2HybridMode() {
		t.Mounts[""] = hybrid
	}
	return t, nil
}

// LimitsSwap reports whether the swap that a cgroup uses can be limited.
func (t Tree) LimitsSwap() bool {
	at, ok := t.Mounts["memory"]
	if !ok {
		return false
	}
	if !t.V2 {
		return isFile(filepath.Join(at, "memory.memsw.limit_in_bytes"))
	}
	own, err := cgroups.ParseCgroupFile("/proc/self/cgroup")
	return err == nil && isFile(filepath.Join(at, own[""], "memory.swap.max")) // the root has no such file
}

func isFile(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// PageSizes returns the kernel's names of the sizes of huge pages that this
// machine has, such as "2MB".
func PageSizes() []string { return cgroups.HugePageSizes() }

func (t Tree) has(controller string) bool {
	_, ok := t.Mounts[controller]
	return ok
}

// dirs lists the directories of a cgroup in all hierarchies, sorted.
func (t Tree) dirs(cgroupPath string) []string {
	var out []string
	for mount := range maps.Values(t.Mounts) {
		out = append(out, filepath.Join(mount, cgroupPath))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// pids lists the processes in a cgroup and below it, sorted.
func (t Tree) pids(cgroupPath string) ([]int, error) {
	var out []int
	for _, dir := range t.dirs(cgroupPath) {
		pids, err := cgroups.GetAllPids(dir)
		if err != nil && isDir(dir) { // not gone in between
			return nil, fmt.Errorf("listing the processes of cgroup %s: %w", dir, err)
		}
		out = append(out, pids...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// children lists the names of the cgroups directly below one, sorted.
func (t Tree) children(cgroupPath string) ([]string, error) {
	var out []string
	for _, dir := range t.dirs(cgroupPath) {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			return nil, fmt.Errorf("listing the cgroups below %s: %w", dir, err)
		}
		for _, e := range entries {
			if e.IsDir() {
				out = append(out, e.Name())
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// memory reads how much memory a cgroup uses, in bytes.
func (t Tree) memory(cgroupPath string) (int64, error) {
	at, ok := t.Mounts["memory"]
	if !ok {
		return 0, nil
	}
	name := "memory.usage_in_bytes"
	if t.V2 {
		name = "memory.current"
	}
	text, err := os.ReadFile(filepath.Join(at, cgroupPath, name))
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// exists reports whether there is a directory of it in any hierarchy.
func (t Tree) exists(cgroupPath string) bool {
	return slices.ContainsFunc(t.dirs(cgroupPath), isDir)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
