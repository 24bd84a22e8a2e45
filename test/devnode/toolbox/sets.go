package toolbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// set is a group of programs that are built and kept together.
type set struct {
	name     string
	module   string // below test/tools
	packages []string
	tags     string
	cgo      string // value of CGO_ENABLED
}

// The sets. They are values, not state.
var (
	// runc needs C for the part that runs before the Go runtime, and libseccomp because every sandbox asks for the
	// runtime's default profile.
	runc = set{name: "runc", module: "oci", packages: []string{"github.com/opencontainers/runc", "sigs.k8s.io/cri-tools/cmd/crictl"}, tags: "seccomp", cgo: "1"}
	cni  = set{name: "cni", module: "oci", packages: []string{
		"github.com/containernetworking/plugins/plugins/ipam/host-local",
		"github.com/containernetworking/plugins/plugins/main/bridge",
		"github.com/containernetworking/plugins/plugins/main/loopback",
		"github.com/containernetworking/plugins/plugins/meta/portmap",
	}, cgo: "0"}
	containerd = set{name: "containerd", module: "containerd", packages: []string{
		"github.com/containerd/containerd/v2/cmd/containerd",
		"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
		"github.com/containerd/containerd/v2/cmd/ctr",
	}, tags: "no_btrfs,no_devmapper,no_zfs", cgo: "0"}
	jaeger = set{name: "jaeger", module: "jaeger", packages: []string{"github.com/jaegertracing/jaeger/cmd/jaeger"}, cgo: "0"}
)

// build returns the directory with the programs of the set, after building them if no earlier build of the same versions,
// flags and Go release is there.
func (s set) build(ctx context.Context, repo string, log io.Writer) (string, error) {
	module := filepath.Join(repo, "test", "tools", s.module)
	id, err := s.id(module)
	if err != nil {
		return "", err
	}
	return cached(s.name+"-"+id, func(dir string) error {
		begin := time.Now()
		_, _ = fmt.Fprintf(log, "building %s (once, into %s)\n", strings.Join(s.programs(), ", "), filepath.Dir(dir))
		if err := goBuild(ctx, module, dir, s); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(log, "built %s in %s\n", s.name, time.Since(begin).Round(time.Second))
		return nil
	})
}

// programs are the names of the binaries.
func (s set) programs() []string {
	var names []string
	for _, p := range s.packages {
		names = append(names, filepath.Base(p))
	}
	return names
}

// id stands for everything that decides what a build makes.
func (s set) id(module string) (string, error) {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%q %s", s, runtime.Version())
	for _, name := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			return "", err
		}
		_, _ = h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}
