package private

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/flowlet/flowlet/test/devnode/sweep"
)

// ownRoot cuts the mount namespace of this thread off from the machine's, and makes its root directory the root of a
// mount, which it is not in a chroot and which runc's pivot_root needs.
func ownRoot() error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open /", err)
	}
	defer unix.Close(root)
	if err := leaveChroot(); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("make / private", err)
	}
	var was, is unix.Stat_t
	if err := errors.Join(unix.Fstat(root, &was), unix.Stat("/", &is)); err != nil {
		return err
	}
	if was.Dev == is.Dev && was.Ino == is.Ino {
		return nil
	}
	return pivot(root)
}

// leaveChroot goes to the root of this thread's mount namespace, by entering that namespace once more.
func leaveChroot() error {
	ns, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("/proc has to be mounted: %w", err)
	}
	defer unix.Close(ns)
	return os.NewSyscallError("setns", unix.Setns(ns, unix.CLONE_NEWNS))
}

// pivot makes the directory the root of the mount namespace, with the mounts below it.
func pivot(dir int) error {
	tree, err := unix.OpenTree(dir, "", unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("open_tree", err)
	}
	defer unix.Close(tree)
	if err := unix.MoveMount(tree, "", dir, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return os.NewSyscallError("move_mount", err)
	}
	if err := unix.Fchdir(tree); err != nil {
		return os.NewSyscallError("fchdir", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return os.NewSyscallError("pivot_root", err)
	}
	// The old root lies on top of the new one now.
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return os.NewSyscallError("umount", err)
	}
	return os.Chdir("/")
}

// mountSystem mounts what a bare chroot may lack. proc says that this is a new PID namespace, which has its own /proc.
func mountSystem(proc bool) error {
	if proc {
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return os.NewSyscallError("mount /proc", err)
		}
	}
	if _, err := os.Stat("/sys/class"); err != nil {
		if err := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return os.NewSyscallError("mount /sys", err)
		}
	}
	mounts, err := sweep.CgroupMounts()
	if err != nil || len(mounts) > 0 {
		return err
	}
	return mountCgroups()
}

// mountCgroups mounts every hierarchy of the kernel below /sys/fs/cgroup.
func mountCgroups() error {
	b, err := os.ReadFile("/proc/self/cgroup") // lines of ID:controllers:path, 0:: is cgroup2
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	const base = "/sys/fs/cgroup"
	if len(lines) == 1 && strings.HasPrefix(lines[0], "0::") {
		return os.NewSyscallError("mount cgroup2", unix.Mount("cgroup2", base, "cgroup2", 0, ""))
	}
	if err := unix.Mount("cgroup", base, "tmpfs", 0, "mode=755"); err != nil {
		return os.NewSyscallError("mount "+base, err)
	}
	for _, line := range lines {
		f := strings.SplitN(line, ":", 3)
		fstype, options, name := "cgroup", f[1], strings.TrimPrefix(f[1], "name=")
		if f[1] == "" {
			fstype, name = "cgroup2", "unified"
		} else if name != f[1] {
			options = "none," + options
		}
		at := filepath.Join(base, name)
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("cgroup", at, fstype, 0, options); err != nil {
			return os.NewSyscallError("mount "+at, err)
		}
	}
	return nil
}
