package toolbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// DebianContainerd is the directory with the distribution's containerd and shim, and the path of its runc: older lines, which
// the agent has to get on with.
func DebianContainerd(ctx context.Context, log io.Writer) (dir, runc string, err error) {
	containerd, err := unpacked(ctx, "containerd", log)
	if err != nil {
		return "", "", err
	}
	oci, err := unpacked(ctx, "runc", log)
	return filepath.Join(containerd, "usr", "bin"), filepath.Join(oci, "usr", "sbin", "runc"), err
}

// Crun writes a script into dir that runs the distribution's crun, an OCI runtime in C, and returns its path. The script
// finds the library that comes in a package of its own. And it hides the v2 half of a machine with cgroups of both
// versions, which crun refuses to work beside.
func Crun(ctx context.Context, dir string, log io.Writer) (string, error) {
	root, err := unpacked(ctx, "crun", log)
	if err != nil {
		return "", err
	}
	library, err := unpacked(ctx, "libyajl2", log)
	if err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(library, "usr", "lib", "*-linux-gnu*"))
	if err != nil || len(found) == 0 {
		return "", errors.New("there is no library in the package libyajl2")
	}
	const script = `#!/bin/sh
if [ -e /sys/fs/cgroup/unified/cgroup.controllers ]; then
	exec unshare -m --propagation unchanged sh -c 'mount --make-private /sys/fs/cgroup && umount -l /sys/fs/cgroup/unified && exec "$0" "$@"' "$0" "$@"
fi
LD_LIBRARY_PATH=%q exec %q "$@"
`
	path := filepath.Join(dir, "crun")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, fmt.Appendf(nil, script, found[0], filepath.Join(root, "usr", "bin", "crun")), 0o755)
}

// unpacked is a directory in the cache with the files of a Debian package, which is not installed.
func unpacked(ctx context.Context, pkg string, log io.Writer) (string, error) {
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return "", fmt.Errorf("%s is taken from the Debian package, and there is no apt-get", pkg)
	}
	return cached("debian-"+pkg, func(dir string) error {
		_, _ = fmt.Fprintf(log, "downloading the package %s (it is not installed)\n", pkg)
		// The package lists may be missing or old.
		const script = `cd "$1" && chmod 755 . && { "$2" download -q "$3" || { "$2" update -q && "$2" download -q "$3"; }; } && dpkg-deb -x "$3"_*.deb . && rm "$3"_*.deb`
		cmd := exec.CommandContext(ctx, "sh", "-c", script, "sh", dir, apt, pkg)
		cmd.Env = append(os.Environ(), "LC_ALL=C", "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("download the package %s: %w\n%s", pkg, err, out)
		}
		return nil
	})
}
