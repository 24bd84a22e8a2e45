package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"
)

// lister is the part of Mounter that removal needs.
type lister interface {
	List() ([]mount.MountPoint, error)
}

// removeTree deletes path with all below it, unless something is mounted at or
// below it: then nothing is deleted. A mount that appears meanwhile is not
// entered either: every directory is opened without following symbolic links
// out of its parent and asked whether it is the root of a mount. A path that is
// gone is success.
func removeTree(path string, mounts lister) error {
	found, err := mountsBelow(path, mounts)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("%s is not removed: still mounted: %s", path, strings.Join(found, ", "))
	}
	parent, err := os.OpenRoot(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }()
	if err := (&removal{}).entry(parent, filepath.Base(path), 0); err != nil {
		return fmt.Errorf("removing %s: %w", path, err)
	}
	return nil
}

// mountsBelow lists the mount points at or below path, the deepest first.
func mountsBelow(path string, mounts lister) ([]string, error) {
	all, err := mounts.List()
	if err != nil {
		return nil, fmt.Errorf("looking for mounts below %s: %w", path, err)
	}
	path = realPath(path)
	var out []string
	for _, m := range all {
		if m.Path == path || strings.HasPrefix(m.Path, path+"/") {
			out = append(out, m.Path)
		}
	}
	// Later mounts cover earlier ones; a child sorts after its parent.
	slices.Sort(out)
	slices.Reverse(out)
	return out, nil
}

// realPath resolves the symbolic links on the way to path, as the kernel's list
// of mounts does. The last element is not followed.
func realPath(path string) string {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return path // its directory is gone, and so is every mount below it
	}
	return filepath.Join(dir, filepath.Base(path))
}

// deepest is how deep removal goes down: each level holds a file descriptor,
// and a pod may make more levels than the agent may have of those.
const deepest = 64

// removal deletes one tree.
type removal struct {
	top    *os.Root // of the tree, once it is open
	lifted int
}

// entry deletes one entry of a directory.
func (r *removal) entry(parent *os.Root, name string, depth int) error {
	info, err := parent.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() && depth > deepest {
		return r.lift(parent, name)
	}
	if info.IsDir() {
		if err := r.empty(parent, name, depth); err != nil {
			return err
		}
	}
	if err := parent.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (r *removal) empty(parent *os.Root, name string, depth int) error {
	dir, err := parent.OpenRoot(name)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if err := notAMount(parent, dir, name); err != nil {
		return err
	}
	if r.top == nil {
		r.top = dir
	}
	for {
		names, err := someNames(dir)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, child := range names {
			if err := r.entry(dir, child, depth+1); err != nil {
				return fmt.Errorf("%s: %w", child, err)
			}
		}
	}
}

// lift moves a directory that is too deep up to the top of the tree, where it
// is found when what is there is read again. The kernel refuses a mount point.
// What may be replaced is an empty directory.
func (r *removal) lift(parent *os.Root, name string) error {
	from, err := parent.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	top, err := r.top.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = top.Close() }()
	for {
		r.lifted++
		err := unix.Renameat(int(from.Fd()), name, int(top.Fd()), fmt.Sprintf("too-deep-%d", r.lifted))
		switch {
		case err == nil, errors.Is(err, unix.ENOENT):
			return nil
		case errors.Is(err, unix.EEXIST), errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.ENOTDIR): // that name is taken
		default:
			return fmt.Errorf("moving it up, since it is deep in the tree: %w", err)
		}
	}
}

// someNames reads a bounded part of a directory that may be large; reading
// starts anew after each part was deleted.
func someNames(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(1024)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

// notAMount compares the device with the parent's, and asks the kernel, which
// knows of bind mounts on one device too (Linux 5.8).
func notAMount(parent, dir *os.Root, name string) error {
	above, err := statx(parent)
	if err != nil {
		return err
	}
	here, err := statx(dir)
	if err != nil {
		return err
	}
	if here.Dev_major != above.Dev_major || here.Dev_minor != above.Dev_minor || here.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return fmt.Errorf("%s: is a mount point", name)
	}
	return nil
}

func statx(dir *os.Root) (unix.Statx_t, error) {
	var out unix.Statx_t
	f, err := dir.Open(".")
	if err != nil {
		return out, err
	}
	defer func() { _ = f.Close() }()
	err = unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS, &out)
	return out, err
}
