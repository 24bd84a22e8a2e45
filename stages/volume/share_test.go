package volume_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/moby/sys/mountinfo"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/flowlet/flowlet/stages/volume"
)

// The thread of this test has a mount namespace of its own, and ends with it.
func TestShareMakesTheRootASharedMountOnce(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	type result struct {
		changed [2]bool
		err     [2]error
		shared  string
		errs    []error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread()
		var r result
		if err := ownMounts(); err != nil {
			r.errs = append(r.errs, err)
		} else {
			for i := range r.changed {
				r.changed[i], r.err[i] = volume.Share(dir)
			}
			found, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(dir))
			r.errs = append(r.errs, err)
			if len(found) == 1 {
				r.shared = found[0].Optional
			}
		}
		done <- r
	}()
	r := <-done
	for _, err := range r.errs {
		require.NoError(t, err)
	}
	require.NoError(t, r.err[0])
	require.NoError(t, r.err[1])
	require.Equal(t, [2]bool{true, false}, r.changed)
	require.Contains(t, r.shared, "shared:")
}

func TestShareOfNothingSaysSo(t *testing.T) {
	_, err := volume.Share(t.TempDir() + "/none")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// ownMounts gives the thread a mount namespace that nobody else sees mounts of.
// Where the tests run in a chroot, its root is no mount: entering the namespace
// leaves the chroot, and what is made private is all that lies below.
func ownMounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return err
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(root) //nolint:errcheck // a path
	ns, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(ns) //nolint:errcheck // a path
	for _, step := range []func() error{
		func() error { return unix.Setns(ns, unix.CLONE_NEWNS) },
		func() error { return unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, "") },
		func() error { return unix.Fchdir(root) },
		func() error { return unix.Chroot(".") },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
