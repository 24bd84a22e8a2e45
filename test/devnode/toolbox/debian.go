package toolbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// DebianContainerd is the directory with the distribution's containerd and shim. It is an older line of containerd, which
// the agent has to get on with.
func DebianContainerd(ctx context.Context, log io.Writer) (string, error) {
	root, err := unpacked(ctx, "containerd", log)
	return filepath.Join(root, "usr", "bin"), err
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
