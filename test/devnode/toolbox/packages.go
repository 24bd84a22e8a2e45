package toolbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// need is something that a Debian package brings. None of these packages starts a service.
type need struct {
	pkg, why string
	present  func() bool
}

var needs = []need{
	{"libc6-dev", "C headers, for runc and the race detector", hasFile("/usr/include/stdio.h")},
	{"pkg-config", "finds libseccomp when runc is built", hasProgram("pkg-config")},
	{"libseccomp-dev", "runc's seccomp support", hasHeader("seccomp.h")},
	{"nftables", "host ports of pods", hasProgram("nft")},
}

// Packages installs what is missing of the packages that the tools and tests need, and says on log what it installs and
// why. Without root, or without apt-get, the error names what to install.
func Packages(ctx context.Context, log io.Writer) error {
	var missing []string
	for _, n := range needs {
		if !n.present() {
			missing = append(missing, n.pkg)
			_, _ = fmt.Fprintf(log, "missing: %s (%s)\n", n.pkg, n.why)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("install %s, or the packages of your distribution that match, and try again; root on Debian and Ubuntu would do it here", strings.Join(missing, " "))
	}
	_, _ = fmt.Fprintf(log, "installing %s with apt-get; these packages start no service\n", strings.Join(missing, " "))
	unguard, err := guardServices()
	if err != nil {
		return err
	}
	defer unguard()
	install := append([]string{"install", "-y", "-q", "--no-install-recommends"}, missing...)
	if _, err := aptGet(ctx, apt, install...); err == nil {
		return nil
	}
	// The package lists may be missing or old.
	if out, err := aptGet(ctx, apt, "update", "-q"); err != nil {
		return fmt.Errorf("apt-get update: %w\n%s", err, out)
	}
	if out, err := aptGet(ctx, apt, install...); err != nil {
		return fmt.Errorf("apt-get install %s: %w\n%s", strings.Join(missing, " "), err, out)
	}
	return nil
}

// guardServices makes Debian's packages start nothing, until the returned function is called.
func guardServices() (func(), error) {
	const path = "/usr/sbin/policy-rc.d" // exit status 101: forbidden
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, os.ErrExist) {
		return func() {}, nil // the machine has a policy already
	}
	if err != nil {
		return nil, fmt.Errorf("forbid packages to start services: %w", err)
	}
	_, werr := f.WriteString("#!/bin/sh\nexit 101\n")
	if err := errors.Join(werr, f.Close()); err != nil {
		return nil, err
	}
	return func() { _ = os.Remove(path) }, nil
}

func aptGet(ctx context.Context, apt string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, apt, append([]string{"-o", "DPkg::Lock::Timeout=300"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	return cmd.CombinedOutput()
}

func hasFile(path string) func() bool {
	return func() bool {
		_, err := os.Stat(path)
		return err == nil
	}
}

func hasProgram(name string) func() bool {
	return func() bool {
		_, err := exec.LookPath(name)
		return err == nil || hasFile("/usr/sbin/"+name)() || hasFile("/sbin/"+name)()
	}
}

// hasHeader looks where distributions put the headers of libraries, the directory of a Debian architecture included.
func hasHeader(name string) func() bool {
	return func() bool {
		found, _ := filepath.Glob("/usr/include/*-linux-gnu*/" + name)
		return len(found) > 0 || hasFile("/usr/include/"+name)()
	}
}
