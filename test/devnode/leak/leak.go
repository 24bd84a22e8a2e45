// Package leak compares a machine before and after: what a private node must not leave behind.
package leak

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flowlet/flowlet/test/devnode/sweep"
)

// Snapshot is what of the machine can be compared: kinds of things, and the things there are.
type Snapshot map[string][]string

// fileRoots are where runtimes and agents leave files. Files are compared by name.
var fileRoots = []string{"/run", "/var/lib", "/var/log", "/etc", "/opt", "/usr/libexec", "/usr/local"}

// notOurs are below them: packages that a test may have installed, and logs of their installation.
var notOurs = []string{"/var/lib/dpkg", "/var/lib/apt", "/var/log/apt", "/var/log/dpkg.log", "/var/log/alternatives.log", "/etc/alternatives", "/etc/ld.so.cache"}

// Take looks at the machine, from the mount and PID namespaces of this process.
func Take() (Snapshot, error) {
	s := Snapshot{}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 5 {
			s.add("mount", f[4]+" "+strings.Join(f[6:], " "))
		}
	}
	links, err := filepath.Glob("/sys/class/net/*")
	if err != nil {
		return nil, err
	}
	s.add("link", links...)
	routes, _ := os.ReadFile("/proc/net/route")
	s.add("route", strings.Split(string(routes), "\n")...)
	for _, name := range []string{"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"} {
		b, _ := os.ReadFile(name)
		s.add("sysctl", name+" = "+strings.TrimSpace(string(b)))
	}
	s.cgroups()
	s.rules()
	s.files()
	s.processes()
	return s, nil
}

// Diff lists what after has more, or has differently, than before.
func Diff(before, after Snapshot) []string {
	var diff []string
	for kind, things := range after {
		had := map[string]bool{}
		for _, t := range before[kind] {
			had[t] = true
		}
		for _, t := range things {
			if !had[t] {
				diff = append(diff, kind+": "+t)
			}
		}
	}
	slices.Sort(diff)
	return diff
}

func (s Snapshot) add(kind string, things ...string) { s[kind] = append(s[kind], things...) }

func (s Snapshot) cgroups() {
	mounts, _ := sweep.CgroupMounts()
	for _, m := range mounts {
		_ = filepath.WalkDir(m.Path, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				s.add("cgroup", path)
			}
			return nil // one may go away meanwhile
		})
		b, _ := os.ReadFile(filepath.Join(m.Path, "cgroup.subtree_control"))
		s.add("cgroup", m.Path+" gives "+strings.TrimSpace(string(b)))
	}
}

// rules are the firewall's, as far as there are programs to show them. Counters change by themselves and are left out.
func (s Snapshot) rules() {
	for _, command := range [][]string{{"nft", "list", "ruleset"}, {"iptables-save"}, {"ip6tables-save"}} {
		out, _ := exec.Command(command[0], command[1:]...).Output()
		for line := range strings.Lines(string(out)) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ":") {
				s.add("rule", command[0]+": "+line)
			}
		}
	}
}

func (s Snapshot) files() {
	for _, root := range fileRoots {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if slices.Contains(notOurs, path) && err == nil && d.IsDir() {
				return fs.SkipDir
			}
			if err == nil && !slices.Contains(notOurs, path) {
				s.add("file", path)
			}
			return nil
		})
	}
	// Only names that a node could use: others work in /tmp, too.
	for _, pattern := range []string{"flowlet[0-9]*", "demo[0-9]*", "containerd*", "runc*", "cni*", "devnode*"} {
		names, _ := filepath.Glob(filepath.Join(os.TempDir(), pattern))
		s.add("file", names...)
	}
}

// processes are known by PID and command line. Kernel threads have none.
func (s Snapshot) processes() {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		b, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err == nil && len(b) > 0 {
			s.add("process", filepath.Base(dir)+" "+strings.ReplaceAll(strings.TrimRight(string(b), "\x00"), "\x00", " "))
		}
	}
}
