package sweep

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CgroupMount is one mounted cgroup hierarchy.
type CgroupMount struct {
	Path string
	V2   bool
}

// CgroupMounts lists the hierarchies that this process can see. A version 1 hierarchy may be mounted more than once.
func CgroupMounts() ([]CgroupMount, error) {
	f, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var mounts []CgroupMount
	for s := bufio.NewScanner(f); s.Scan(); {
		before, after, ok := strings.Cut(s.Text(), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 1 {
			continue
		}
		if right[0] == "cgroup" || right[0] == "cgroup2" {
			mounts = append(mounts, CgroupMount{Path: left[4], V2: right[0] == "cgroup2"})
		}
	}
	return mounts, nil
}

// MakeCgroup makes the node's cgroup in every hierarchy, usable for containers below it.
func MakeCgroup(st State) error {
	mounts, err := CgroupMounts()
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if m.V2 {
			giveControllers(m.Path)
		}
		dir := filepath.Join(m.Path, st.Cgroup)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if m.V2 {
			giveControllers(dir)
		}
		// A version 1 cpuset without CPUs and memory nodes breaks every container below it.
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			if have := readTrimmed(filepath.Join(m.Path, name)); have != "" && !m.V2 {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(have), 0o644); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// giveControllers lets the children of a cgroup2 use what the cgroup has. A controller that the kernel refuses (one in use
// by version 1, real-time threads) is left out: containers start without it.
func giveControllers(dir string) {
	for _, c := range strings.Fields(readTrimmed(filepath.Join(dir, "cgroup.controllers"))) {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644)
	}
}

func subtreeControl() string {
	mounts, _ := CgroupMounts()
	for _, m := range mounts {
		if m.V2 {
			return readTrimmed(filepath.Join(m.Path, "cgroup.subtree_control"))
		}
	}
	return ""
}

// removeCgroup ends what runs in the node's cgroups and removes them.
func removeCgroup(st State, deadline time.Time) error {
	mounts, err := CgroupMounts()
	if err != nil {
		return err
	}
	for _, m := range mounts {
		dir := filepath.Join(m.Path, st.Cgroup)
		for {
			err := removeTree(dir)
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("remove cgroup %s: %w", dir, err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if m.V2 {
			takeControllers(m.Path, st.Subtree)
		}
	}
	return nil
}

// removeTree makes one try to empty and remove a cgroup and all below it.
func removeTree(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) && len(dirs) == 0 {
		return nil
	}
	slices.Reverse(dirs) // children first
	var last error
	for _, d := range dirs {
		endProcesses(d)
		if err := unix.Rmdir(d); err != nil && !errors.Is(err, unix.ENOENT) {
			last = err
		}
	}
	return last
}

// endProcesses kills what is in a cgroup, and thaws it so that it can die.
func endProcesses(dir string) {
	_ = os.WriteFile(filepath.Join(dir, "freezer.state"), []byte("THAWED"), 0o644)
	_ = os.WriteFile(filepath.Join(dir, "cgroup.freeze"), []byte("0"), 0o644)
	for _, line := range strings.Fields(readTrimmed(filepath.Join(dir, "cgroup.procs"))) {
		if pid, err := strconv.Atoi(line); err == nil && pid > 1 && pid != os.Getpid() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// takeControllers undoes giveControllers at the root, for those that were not given before.
func takeControllers(root, before string) {
	had := strings.Fields(before)
	for _, c := range strings.Fields(readTrimmed(filepath.Join(root, "cgroup.subtree_control"))) {
		if !slices.Contains(had, c) {
			_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("-"+c), 0o644)
		}
	}
}
