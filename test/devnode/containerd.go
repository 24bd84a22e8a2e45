package devnode

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/flowlet/flowlet/test/devnode/images"
	"github.com/flowlet/flowlet/test/devnode/private"
)

// Configuration of containerd 2.x. Paths that the defaults put outside of the work directory are named here.
const configV2 = `version = 3
root = "{{.Mem}}/root"
state = "{{.Mem}}/state"
imports = []
disabled_plugins = ["io.containerd.image-verifier.v1.bindir"]
[grpc]
  address = "{{.Socket}}"
[ttrpc]
  address = "{{.Socket}}.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "{{.Mem}}/opt"
[plugins."io.containerd.nri.v1.nri"]
  disable = true
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{{.Pause}}"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "{{.Mem}}/certs.d"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = {{.RestrictOOM}}
  disable_apparmor = {{.NoAppArmor}}
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{{.CNIBin}}"]
    conf_dir = "{{.Mem}}/net.d"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = false
      BinaryName = "{{.OCI}}"
`

// Configuration of containerd 1.x.
const configV1 = `version = 2
root = "{{.Mem}}/root"
state = "{{.Mem}}/state"
imports = []
[grpc]
  address = "{{.Socket}}"
[ttrpc]
  address = "{{.Socket}}.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "{{.Mem}}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{{.Pause}}"
  restrict_oom_score_adj = {{.RestrictOOM}}
  disable_apparmor = {{.NoAppArmor}}
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{{.Mem}}/certs.d"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{{.CNIBin}}"
    conf_dir = "{{.Mem}}/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
      BinaryName = "{{.OCI}}"
`

// configure writes containerd's configuration, the way to the registry and the CNI network.
func (n *Node) configure(debian bool) error {
	text := configV2
	if debian {
		text = configV1
	}
	var conf strings.Builder
	err := template.Must(template.New("").Parse(text)).Execute(&conf, map[string]any{
		"Mem": n.mem, "Socket": n.socket(), "Pause": images.Pause, "CNIBin": n.Tools.CNI, "OCI": n.oci,
		"RestrictOOM": !mayLowerOOMScore(), "NoAppArmor": !hasAppArmor(),
	})
	if err != nil {
		return err
	}
	network, err := json.MarshalIndent(n.network(), "", "  ")
	if err != nil {
		return err
	}
	for path, content := range map[string]string{
		"containerd.toml":                        conf.String(),
		"certs.d/" + images.Host + "/hosts.toml": fmt.Sprintf("server = %[1]q\n[host.%[1]q]\n  capabilities = [\"pull\", \"resolve\"]\n", "http://"+n.registry.Addr),
		"net.d/10-flowlet.conflist":              string(network),
		"tmp/.keep":                              "",
	} {
		path = filepath.Join(n.mem, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// network is a bridge of its own. There is nothing to reach outside of the machine, hence no masquerading and no firewall
// rule, but for host ports, which go into a table of their own.
func (n *Node) network() map[string]any {
	return map[string]any{
		"cniVersion": "1.0.0",
		"name":       "flowlet-" + n.st.ID,
		"plugins": []any{
			map[string]any{
				"type": "bridge", "bridge": n.st.Bridge, "isGateway": true, "hairpinMode": true,
				"ipam": map[string]any{
					"type":    "host-local",
					"dataDir": filepath.Join(n.Dir, private.Memory, "ipam"),
					"ranges":  []any{[]any{map[string]any{"subnet": n.PodCIDR.String()}}},
					"routes":  []any{map[string]any{"dst": "0.0.0.0/0"}},
				},
			},
			map[string]any{"type": "portmap", "backend": "nftables", "capabilities": map[string]bool{"portMappings": true}},
		},
	}
}

func (n *Node) socket() string { return strings.TrimPrefix(n.Endpoint, "unix://") }

// startRuntime starts containerd and waits until CRI and the network are ready.
func (n *Node) startRuntime(ctx context.Context) error {
	// A crash leaves the socket, which containerd would fail on.
	_ = os.Remove(n.socket())
	cmd := n.Command(context.WithoutCancel(ctx), filepath.Join(n.bin, "containerd"), "--config", filepath.Join(n.mem, "containerd.toml"))
	var err error
	if n.runtime, err = startDaemon(cmd, filepath.Join(n.Dir, "log", filepath.Base(n.mem)+".log")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return n.runtime.await(ctx, n.runtimeReady)
}

func (n *Node) runtimeReady(ctx context.Context) error {
	out, err := n.crictl(ctx, "info")
	if err != nil {
		return err
	}
	var info struct {
		Status struct {
			Conditions []struct {
				Type            string
				Status          bool
				Reason, Message string
			}
		}
	}
	if err := json.Unmarshal(out, &info); err != nil {
		return err
	}
	for _, c := range info.Status.Conditions {
		// There are more conditions, such as one about deprecated settings.
		if !c.Status && (c.Type == "RuntimeReady" || c.Type == "NetworkReady") {
			return fmt.Errorf("%s: %s %s", c.Type, c.Reason, c.Message)
		}
	}
	return nil
}

// mayLowerOOMScore says whether processes may be given a lower oom_score_adj than this one has. Without the capability
// CAP_SYS_RESOURCE runc fails on the negative values of sandboxes, and containerd has to raise them.
func mayLowerOOMScore() bool {
	const sysResource = 24
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, "CapEff:"); ok {
			caps, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			return err == nil && caps&(1<<sysResource) != 0
		}
	}
	return false
}

// hasAppArmor says whether containers can be given a profile: the kernel part alone is not enough.
func hasAppArmor() bool {
	b, err := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	if err != nil || !strings.HasPrefix(string(b), "Y") {
		return false
	}
	_, err = lookPath(os.Getenv("PATH")+":/usr/sbin:/sbin", "apparmor_parser")
	return err == nil
}
