package volume

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Share makes mounts below root show up on both sides of it, which mount
// propagation of containers needs. Where the mount that holds root is not
// shared, root becomes a shared mount of its own; changed tells. It needs the
// right to mount.
func Share(root string) (changed bool, err error) {
	root, err = filepath.EvalSymlinks(root)
	if err != nil {
		return false, err
	}
	mounts, err := mountinfo.GetMounts(mountinfo.ParentsFilter(root))
	if err != nil {
		return false, fmt.Errorf("looking for the mount that holds %s: %w", root, err)
	}
	var holder *mountinfo.Info
	for _, m := range mounts { // later ones cover earlier ones
		if holder == nil || len(m.Mountpoint) >= len(holder.Mountpoint) {
			holder = m
		}
	}
	if holder != nil && strings.Contains(holder.Optional, "shared:") {
		return false, nil
	}
	if holder == nil || holder.Mountpoint != root {
		if err := unix.Mount(root, root, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return false, fmt.Errorf("mounting %s on itself: %w", root, err)
		}
	}
	if err := unix.Mount("", root, "", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		return true, fmt.Errorf("sharing the mount %s: %w", root, err)
	}
	return true, nil
}
