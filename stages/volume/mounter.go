package volume

import (
	"fmt"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"
)

// Mounter changes and lists the mounts of the host. Calls may hang with the
// file system behind a mount. mount.Interface of k8s.io/mount-utils fits, and
// so does its fake; Syscalls is the one to use.
type Mounter interface {
	// Mount fails when the target does not exist.
	Mount(source, target, fstype string, options []string) error
	// Unmount of what is not mounted is an error.
	Unmount(target string) error
	// List returns all mounts, later ones after those they cover.
	List() ([]mount.MountPoint, error)
}

// Syscalls mounts without a child process.
type Syscalls struct{}

var (
	_ Mounter = Syscalls{}
	_ Mounter = mount.Interface(nil)
)

// Mount mounts a file system that takes its options as text.
func (Syscalls) Mount(source, target, fstype string, options []string) error {
	if err := unix.Mount(source, target, fstype, 0, strings.Join(options, ",")); err != nil {
		return fmt.Errorf("mounting %s at %s with options %v: %w", fstype, target, options, err)
	}
	return nil
}

// Unmount does not follow symbolic links.
func (Syscalls) Unmount(target string) error {
	if err := unix.Unmount(target, unix.UMOUNT_NOFOLLOW); err != nil {
		return fmt.Errorf("unmounting %s: %w", target, err)
	}
	return nil
}

// List reads the mounts of this process.
func (Syscalls) List() ([]mount.MountPoint, error) {
	infos, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil, fmt.Errorf("listing mounts: %w", err)
	}
	out := make([]mount.MountPoint, len(infos))
	for i, m := range infos {
		out[i] = mount.MountPoint{Device: m.Source, Path: m.Mountpoint, Type: m.FSType, Opts: strings.Split(m.VFSOptions, ",")}
	}
	return out, nil
}
