package volume

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"
)

// Mounter changes and lists the mounts of the host. Calls may hang with the
// file system behind a mount. mount.Interface of k8s.io/mount-utils fits, and
// so does its fake; Syscalls is the one to use.
type Mounter interface {
	// Mount fails when the target does not exist. With the option "bind" the
	// source is a file or directory, which is shown without what is mounted
	// below it.
	Mount(source, target, fstype string, options []string) error
	// Unmount of what is not mounted is an error.
	Unmount(target string) error
	// List returns all mounts, later ones after those they cover.
	List() ([]mount.MountPoint, error)
}

// detacher is a Mounter that can take a mount away that is in use.
type detacher interface {
	// Detach takes the topmost mount at target away with all that is mounted
	// below it, at once for new users and for others when they are done. It
	// does not wait for a server. What is mounted elsewhere stays.
	Detach(target string) error
}

// Syscalls mounts without a child process, but for what needs a program of its
// own to be mounted (mount.nfs asks the server for ports and versions): that is
// left to mount(8).
type Syscalls struct{}

var (
	_ Mounter = Syscalls{}
	_ Mounter = mount.Interface(nil)

	_ detacher = Syscalls{}
)

const optionBind = "bind"

// Mount mounts a file system that takes its options as text, or binds.
func (Syscalls) Mount(source, target, fstype string, options []string) error {
	if fstype == nfsType {
		return mount.New("").Mount(source, target, fstype, options)
	}
	var flags uintptr
	if i := slices.Index(options, optionBind); i >= 0 {
		flags, options = unix.MS_BIND, slices.Delete(slices.Clone(options), i, i+1)
	}
	if err := unix.Mount(source, target, fstype, flags, strings.Join(options, ",")); err != nil {
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

// Detach does not follow symbolic links. Mounts below the target, if there are
// any, leave their peer groups first: else they would be taken away where they
// come from too.
func (s Syscalls) Detach(target string) error {
	below, err := mountsBelow(target, s)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(below, func(p string) bool { return p != realPath(target) }) {
		if err := unix.Mount("", target, "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return fmt.Errorf("making the mounts below %s private: %w", target, err)
		}
	}
	if err := unix.Unmount(target, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
		return fmt.Errorf("detaching %s: %w", target, err)
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
