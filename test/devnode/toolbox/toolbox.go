// Package toolbox has the programs that a private node needs: it builds them from the modules of test/tools into a cache
// outside the checkout, once for each version, and installs the Debian packages that the builds stand on.
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
	"time"
)

// Tools are directories of programs.
type Tools struct {
	Containerd string // containerd, containerd-shim-runc-v2, ctr
	OCI        string // runc, crictl
	CNI        string // bridge, host-local, loopback, portmap
	Repo       string // the checkout
}

// Path is a PATH with the tools first.
func (t Tools) Path() string {
	return strings.Join([]string{t.Containerd, t.OCI, os.Getenv("PATH"), "/usr/local/sbin:/usr/sbin:/sbin"}, ":")
}

// Ensure builds what is missing in the cache and tells progress on log. Concurrent calls, of other processes too, build
// once. A cold build takes three minutes on two cores.
func Ensure(ctx context.Context, log io.Writer) (Tools, error) {
	repo, err := Repo()
	if err != nil {
		return Tools{}, err
	}
	t := Tools{Repo: repo}
	for _, set := range []struct {
		set
		dir *string
	}{{runc, &t.OCI}, {cni, &t.CNI}, {containerd, &t.Containerd}} {
		if *set.dir, err = set.build(ctx, repo, log); err != nil {
			return Tools{}, err
		}
	}
	return t, nil
}

// Jaeger builds Jaeger and returns the directory with the program. Cold, it takes a quarter of an hour and 2 GB of disk.
func Jaeger(ctx context.Context, log io.Writer) (string, error) {
	repo, err := Repo()
	if err != nil {
		return "", err
	}
	return jaeger.build(ctx, repo, log)
}

// Repo is the root directory of the checkout that the working directory is in.
func Repo() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(b), "module github.com/flowlet/flowlet\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("not inside a checkout of flowlet: the tools are built from its test/tools")
		}
	}
}

// goBuild builds packages of the module in dir into the directory out.
func goBuild(ctx context.Context, dir, out string, s set) error {
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-tags", s.tags, "-o", out + "/"}, s.packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false", "CGO_ENABLED="+s.cgo)
	cmd.WaitDelay = 10 * time.Second
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", s.name, err, output)
	}
	return nil
}
