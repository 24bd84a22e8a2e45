package volume

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/pod"
)

// Config says where pods' files are and how to mount.
type Config struct {
	RootDir string // pods are below its directory "pods"
	LogRoot string // podLogsDir
	// NodeHosts is the node's hosts file; empty means /etc/hosts.
	NodeHosts string
	Mounter   Mounter
	// NodeMemory is the memory in bytes that pods can have together, the
	// largest size of a volume in memory; 0 leaves it to the kernel.
	NodeMemory int64
	// PodMemory returns a pod's memory limit in bytes, 0 for none; nil means
	// that no pod has one.
	PodMemory func(*corev1.Pod) int64
	// Allocatable is what a container without a limit is told as its limit.
	Allocatable corev1.ResourceList
}

// Modes of directories; the umask of the process applies, as in the kubelet.
const (
	privateDir = 0o750
	logDirMode = 0o755 // log collectors read below it
)

// Dirs makes and removes the directories of pods.
type Dirs struct {
	Config
	layout
}

// NewDirs returns Dirs.
func NewDirs(c Config) *Dirs {
	if c.NodeHosts == "" {
		c.NodeHosts = "/etc/hosts"
	}
	return &Dirs{Config: c, layout: layout{root: c.RootDir, logs: c.LogRoot}}
}

// Ensure makes the pod's directories and those of its containers' logs.
func (d *Dirs) Ensure(_ context.Context, p *corev1.Pod) error {
	dirs, logs, err := d.wanted(p)
	if err == nil {
		err = makeAll(dirs, privateDir)
	}
	if err == nil {
		err = makeAll([]string{d.LogRoot}, privateDir)
	}
	if err == nil {
		err = makeAll(logs, logDirMode)
	}
	if err != nil {
		return fmt.Errorf("directories of pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}

func makeAll(dirs []string, mode os.FileMode) error {
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, mode); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dirs) wanted(p *corev1.Pod) (dirs, logs []string, err error) {
	own, err := d.pod(p.UID)
	if err != nil {
		return nil, nil, err
	}
	logDir, err := d.logDir(p.Namespace, p.Name, p.UID)
	if err != nil {
		return nil, nil, err
	}
	for _, kind := range []string{"volumes", "plugins", "containers"} {
		dirs = append(dirs, filepath.Join(own, kind))
	}
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			name, err := component("container", list[i].Name)
			if err != nil {
				return nil, nil, err
			}
			logs = append(logs, filepath.Join(logDir, name))
		}
	}
	return dirs, logs, nil
}

// Remove deletes the pod's directory and its logs. It fails, and deletes
// nothing, while a volume of the pod is left or something is mounted there.
func (d *Dirs) Remove(_ context.Context, s *pod.State) error {
	if err := d.remove(s); err != nil {
		return fmt.Errorf("directories of pod %s: %w", s.FullName(), err)
	}
	return nil
}

func (d *Dirs) remove(s *pod.State) error {
	own, err := d.pod(s.UID())
	if err != nil {
		return err
	}
	left, err := found(d.layout, s.UID())
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("%s is not removed: volumes are left: %s", own, join(left))
	}
	if err := removeTree(own, d.Mounter); err != nil {
		return err
	}
	logs, err := d.logDirs(s.UID())
	for _, dir := range logs {
		err = errors.Join(err, removeTree(dir, d.Mounter))
	}
	return err
}

// logDirs finds the log directories of a UID by their names' end: the pod's
// name may not be known any more.
func (d *Dirs) logDirs(uid types.UID) ([]string, error) {
	entries, err := os.ReadDir(d.LogRoot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		// Neither a namespace nor a pod's name holds "_".
		parts := strings.SplitN(e.Name(), "_", 3)
		if e.IsDir() && len(parts) == 3 && parts[2] == string(uid) {
			out = append(out, filepath.Join(d.LogRoot, e.Name()))
		}
	}
	return out, nil
}

// PodUIDs lists the pods that have a directory, of their own or for logs,
// sorted. What does not look like a UID is none.
func (d *Dirs) PodUIDs() ([]types.UID, error) {
	own, err := subdirs(d.pods())
	if err != nil {
		return nil, fmt.Errorf("listing the directories of pods: %w", err)
	}
	logs, err := subdirs(d.LogRoot)
	if err != nil {
		return nil, fmt.Errorf("listing the directories of pods' logs: %w", err)
	}
	for _, name := range logs {
		if parts := strings.SplitN(name, "_", 3); len(parts) == 3 {
			own = append(own, parts[2])
		}
	}
	var out []types.UID
	for _, name := range own {
		if plainUID.MatchString(name) {
			out = append(out, types.UID(name))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// plainUID is what UIDs are made of; not "lost+found".
var plainUID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*$`)

// LogDir returns the pod's log directory, as the runtime is told.
func (d *Dirs) LogDir(p *corev1.Pod) (string, error) {
	return d.logDir(p.Namespace, p.Name, p.UID)
}

// HostsFile returns the path of the pod's /etc/hosts, whether or not it was
// written.
func (d *Dirs) HostsFile(uid types.UID) string {
	return filepath.Join(d.pods(), filepath.Base(string(uid)), "etc-hosts")
}

// WriteHosts writes the pod's /etc/hosts, unless it is as it should be. It
// keeps the file's inode, because running containers of the pod have it mounted.
func (d *Dirs) WriteHosts(uid types.UID, h Hosts) error {
	if _, err := d.pod(uid); err != nil {
		return err
	}
	node := ""
	if h.HostNetwork {
		data, err := os.ReadFile(d.NodeHosts)
		if err != nil {
			return fmt.Errorf("reading the node's hosts file: %w", err)
		}
		node = string(data)
	}
	const readable = 0o644
	path, content := d.HostsFile(uid), []byte(h.Content(node))
	if is, err := os.ReadFile(path); err == nil && bytes.Equal(is, content) {
		return nil
	}
	if err := os.WriteFile(path, content, readable); err != nil {
		return fmt.Errorf("writing the hosts file of pod %s: %w", uid, err)
	}
	if err := os.Chmod(path, readable); err != nil { // whatever the umask
		return fmt.Errorf("writing the hosts file of pod %s: %w", uid, err)
	}
	return nil
}

// NewTerminationLog makes an empty file that everybody may write for the last
// words of one start of a container, and returns its path.
func (d *Dirs) NewTerminationLog(uid types.UID, container string) (string, error) {
	own, err := d.pod(uid)
	if err != nil {
		return "", err
	}
	if container, err = component("container", container); err != nil {
		return "", err
	}
	dir := filepath.Join(own, "containers", container)
	if err := os.MkdirAll(dir, privateDir); err != nil {
		return "", fmt.Errorf("termination log of container %s: %w", container, err)
	}
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	path := filepath.Join(dir, hex.EncodeToString(id[:]))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return "", fmt.Errorf("termination log of container %s: %w", container, err)
	}
	defer func() { _ = f.Close() }()
	if err := f.Chmod(0o666); err != nil { // whatever the umask
		return "", fmt.Errorf("termination log of container %s: %w", container, err)
	}
	return path, nil
}
