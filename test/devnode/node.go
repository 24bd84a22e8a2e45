package devnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/flowlet/flowlet/test/devnode/images"
	"github.com/flowlet/flowlet/test/devnode/images/inside"
	"github.com/flowlet/flowlet/test/devnode/private"
	"github.com/flowlet/flowlet/test/devnode/sweep"
	"github.com/flowlet/flowlet/test/devnode/toolbox"
)

// Config says what kind of node to start. The zero value is a node with containerd as built from test/tools.
type Config struct {
	Debian bool      // the distribution's containerd, an older line, instead
	Crun   bool      // the distribution's crun in place of runc
	Log    io.Writer // progress; nil is os.Stderr
}

// Node is a running private node. Its methods are not for concurrent use.
type Node struct {
	Dir        string       // the work directory; log/ below it outlives the node
	Endpoint   string       // unix:///…, the CRI socket; it can be reached from outside of the namespaces
	CgroupRoot string       // an existing cgroup, for KubeletConfiguration.cgroupRoot
	PodCIDR    netip.Prefix // pod IPs; the machine reaches them
	Demo       string       // image for pods, see images/demo
	Pause      string       // the sandbox image
	Tools      toolbox.Tools

	st       sweep.State
	mem      string // what is this containerd's own, on the tmpfs
	log      io.Writer
	registry *images.Registry
	runtime  *daemon
	bin      string // directory with containerd
	oci      string // the OCI runtime; empty is runc as built from test/tools
	name     string // what Runtime says, once it is known
}

// Start starts a node for a process in private namespaces: st is what private.Run passed. Stop has to be called, also
// after an error of a test; what Start itself started it stops when it fails. st.Dir says where files are.
func Start(ctx context.Context, st sweep.State, cfg Config) (_ *Node, err error) {
	name := "containerd"
	if cfg.Debian {
		name = "containerd-debian"
	}
	if cfg.Crun {
		name += "-crun"
	}
	n := &Node{
		Dir: st.Dir, Endpoint: "unix://" + filepath.Join(st.Dir, name+".sock"), CgroupRoot: st.Cgroup, PodCIDR: st.PodCIDR,
		Demo: images.Demo, Pause: images.Pause, st: st, mem: filepath.Join(st.Dir, private.Memory, name), log: cfg.Log,
	}
	if n.log == nil {
		n.log = os.Stderr
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
		}
	}()
	if n.Tools, err = toolbox.Ensure(ctx, n.log); err != nil {
		return nil, err
	}
	n.bin = n.Tools.Containerd
	if cfg.Debian {
		n.bin, n.oci, err = toolbox.DebianContainerd(ctx, n.log)
	}
	if cfg.Crun && err == nil {
		n.oci, err = toolbox.Crun(ctx, n.mem, n.log)
	}
	if err != nil {
		return nil, err
	}
	if err := n.serveImages(ctx); err != nil {
		return nil, fmt.Errorf("make and serve the images: %w", err)
	}
	if err := n.configure(cfg.Debian); err != nil {
		return nil, fmt.Errorf("configure containerd: %w", err)
	}
	return n, n.startRuntime(ctx)
}

// Beside starts another containerd in the same namespaces and network, of another kind: Debian and Crun say which. It has to be
// stopped before n is.
func (n *Node) Beside(ctx context.Context, cfg Config) (*Node, error) { return Start(ctx, n.st, cfg) }

// Command is a command with the tools in PATH, the node's runtime as crictl's default and its output on os.Stderr. It is
// sent SIGINT when the context ends, and killed after ten seconds more.
func (n *Node) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	if found, err := lookPath(n.Path(), name); err == nil {
		name = found
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "PATH="+n.Path(), "TMPDIR="+n.tmp(),
		"CONTAINER_RUNTIME_ENDPOINT="+n.Endpoint, "IMAGE_SERVICE_ENDPOINT="+n.Endpoint)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// Runtime names the container runtime and what makes its containers, with their versions.
func (n *Node) Runtime(ctx context.Context) (string, error) {
	if n.name != "" {
		return n.name, nil
	}
	out, err := n.crictl(ctx, "version") // Version, RuntimeName, RuntimeVersion and RuntimeApiVersion, a line each
	if err != nil {
		return "", err
	}
	v := inside.Fields(string(out))
	oci := n.oci
	if oci == "" {
		oci = "runc"
	}
	cmd := n.Command(ctx, oci, "--version")
	cmd.Stdout, cmd.Stderr = nil, nil
	if out, err = cmd.Output(); err != nil {
		return "", fmt.Errorf("%s --version: %w", oci, err)
	}
	first, _, _ := strings.Cut(string(out), "\n") // runc version 1.5.3
	n.name = fmt.Sprintf("%s %s, %s", v["RuntimeName"], strings.TrimPrefix(v["RuntimeVersion"], "v"), strings.Replace(first, " version", "", 1))
	return n.name, nil
}

// Path is a PATH with the node's containerd and tools first.
func (n *Node) Path() string { return n.bin + ":" + n.Tools.Path() }

// MemDir makes a directory on the node's tmpfs. It goes away with the namespaces.
func (n *Node) MemDir(name string) (string, error) {
	dir := filepath.Join(n.Dir, private.Memory, name)
	return dir, os.MkdirAll(dir, 0o755)
}

// RestartRuntime stops containerd, as an upgrade of its package does, and starts it again. Containers keep running.
func (n *Node) RestartRuntime(ctx context.Context) error {
	return errors.Join(n.StopRuntime(ctx), n.startRuntime(ctx))
}

// StopRuntime stops containerd; containers keep running. RestartRuntime starts it again.
func (n *Node) StopRuntime(ctx context.Context) error {
	if n.runtime == nil {
		return nil
	}
	err := n.runtime.stop(ctx)
	n.runtime = nil
	return err
}

// Stop removes all pods, and stops containerd and the registry. What is outside of the namespaces is taken away by
// private.Run when the process has ended. A second call does nothing.
func (n *Node) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var err error
	if n.runtime != nil {
		err = errors.Join(n.removePods(ctx), n.StopRuntime(ctx))
	}
	if n.registry != nil {
		n.registry.Close()
		n.registry = nil
	}
	return err
}

// removePods removes what is left in the runtime, so that CNI and volumes are undone, too.
func (n *Node) removePods(ctx context.Context) error {
	out, err := n.crictl(ctx, "pods", "-q")
	if err != nil || len(out) == 0 {
		return err
	}
	_, err = n.crictl(ctx, "rmp", "-a", "-f")
	return err
}

func (n *Node) crictl(ctx context.Context, args ...string) ([]byte, error) {
	cmd := n.Command(ctx, "crictl", args...)
	cmd.Stdout, cmd.Stderr = nil, nil
	out, err := cmd.Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return out, fmt.Errorf("crictl %s: %w: %s", args[0], err, ended.Stderr)
	}
	return out, err
}

func (n *Node) serveImages(ctx context.Context) error {
	built, err := images.Build(ctx, n.Tools.Repo)
	if err != nil {
		return err
	}
	if n.registry, err = images.Serve(); err != nil {
		return err
	}
	for name, img := range built {
		if err := n.registry.Push(ctx, name, img); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) tmp() string { return filepath.Join(n.mem, "tmp") }

// lookPath is exec.LookPath for another PATH.
func lookPath(path, name string) (string, error) {
	if filepath.Base(name) != name {
		return name, nil
	}
	for _, dir := range filepath.SplitList(path) {
		if full, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return full, nil
		}
	}
	return "", exec.ErrNotFound
}
