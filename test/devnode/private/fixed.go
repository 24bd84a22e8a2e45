package private

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Memory is where, below the work directory, a tmpfs holds what must not outlive the namespaces.
const Memory = "mem"

// fixedPaths are the directories whose path no configuration moves, and where they lie below the work directory instead.
// Logs are on disk, to be read from outside and afterwards.
var fixedPaths = []struct{ path, at string }{
	{"/run/containerd", Memory + "/run-containerd"}, // shim sockets
	{"/run/netns", Memory + "/run-netns"},
	{"/run/nri", Memory + "/run-nri"},
	{"/var/lib/cni", Memory + "/cni"},         // results of CNI calls
	{"/var/lib/kubelet", Memory + "/kubelet"}, // plugin sockets
	{"/var/log/containers", "log/containers"},
	{"/var/log/pods", "log/pods"},
}

// etcFiles are files that the runtime reads and a bare chroot may lack.
var etcFiles = map[string]string{
	"/etc/hosts":       "127.0.0.1 localhost\n",
	"/etc/resolv.conf": "",
}

// mountFixedPaths puts private directories at the fixed paths. In the end all mounts are shared, as they are on a node,
// which mount propagation between containers and the agent needs; the peers are in these namespaces only.
func mountFixedPaths(dir string) error {
	mem := filepath.Join(dir, Memory)
	if err := os.MkdirAll(mem, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("flowlet", mem, "tmpfs", 0, "mode=755"); err != nil {
		return os.NewSyscallError("mount "+mem, err)
	}
	s := shadows{stage: filepath.Join(mem, "shadow")}
	for _, f := range fixedPaths {
		if err := s.makeMountPoint(f.path); err != nil {
			return err
		}
		at := filepath.Join(dir, f.at)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(at, f.path, "", unix.MS_BIND, ""); err != nil {
			return os.NewSyscallError("bind "+f.path, err)
		}
	}
	for path, content := range etcFiles {
		if err := s.makeFile(path, content); err != nil {
			return err
		}
	}
	return os.NewSyscallError("make / shared", unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""))
}

// shadows makes directories that exist in these namespaces only.
type shadows struct {
	stage string // a directory to build in
	done  []string
}

// makeMountPoint makes sure that the directory exists, without making it on the machine.
func (s *shadows) makeMountPoint(path string) error {
	parent := path
	for {
		_, err := os.Stat(parent)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		parent = filepath.Dir(parent)
	}
	if parent == path {
		return nil
	}
	if !s.covers(parent) {
		if err := s.shadow(parent); err != nil {
			return err
		}
	}
	return os.MkdirAll(path, 0o755)
}

// makeFile makes sure that the file exists, without making it on the machine.
func (s *shadows) makeFile(path, content string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(path)
	if !s.covers(dir) {
		if err := s.shadow(dir); err != nil {
			return err
		}
	}
	_ = os.Remove(path) // a link to nowhere
	return os.WriteFile(path, []byte(content), 0o644)
}

// covers says whether a directory was made here, so that new entries stay here.
func (s *shadows) covers(dir string) bool {
	var st, top unix.Statfs_t
	for _, d := range s.done {
		if strings.HasPrefix(dir+"/", d+"/") && unix.Statfs(dir, &st) == nil && unix.Statfs(d, &top) == nil && st.Fsid == top.Fsid {
			return true
		}
	}
	return false
}

// shadow lays a tmpfs over a directory that shows all its entries by bind mounts, and takes new ones.
func (s *shadows) shadow(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	stage := filepath.Join(s.stage, strconv.Itoa(len(s.done)))
	if err := os.MkdirAll(stage, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("flowlet", stage, "tmpfs", 0, "mode=755"); err != nil {
		return os.NewSyscallError("mount "+stage, err)
	}
	for _, e := range entries {
		if err := show(filepath.Join(dir, e.Name()), filepath.Join(stage, e.Name()), e); err != nil {
			return err
		}
	}
	if err := unix.Mount(stage, dir, "", unix.MS_MOVE, ""); err != nil {
		return os.NewSyscallError("move to "+dir, err)
	}
	s.done = append(s.done, dir)
	return nil
}

// show makes one entry of a shadowed directory visible. One that went away meanwhile is left out.
func show(from, to string, e fs.DirEntry) error {
	switch {
	case e.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case e.IsDir():
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
	default:
		if err := os.WriteFile(to, nil, 0o644); err != nil {
			return err
		}
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil && !errors.Is(err, unix.ENOENT) {
		return os.NewSyscallError("bind "+from, err)
	}
	return nil
}
