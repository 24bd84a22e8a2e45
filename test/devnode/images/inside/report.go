// Package inside is what a process can find out about the place it runs in: a container, as a rule. The program of the images
// prints it, and tests read it.
package inside

import (
	"os"
	"slices"
	"strings"
)

// Report is what a process sees. What cannot be read is missing, or has the error in place of its content.
type Report struct {
	Args      []string
	Env       map[string]string
	Dir       string // working directory
	Hostname  string
	Status    map[string]string // of /proc/self/status: IDs, capability sets, NoNewPrivs, Seccomp …
	OOMScore  string            // oom_score_adj
	UIDMap    string            // as in /proc/self/uid_map, with single spaces
	GIDMap    string
	Spaces    map[string]string // the ID of each namespace, by the names of /proc/self/ns
	Terminals []bool            // which of standard input, output and error are terminals
	Input     string            // what standard input is, as the link of /proc shows it
	Priority  string            // what the kernel answers to getpriority: 20, or an error
	Processes []string          // the names of the processes it can see
	Cgroup    map[string]string // the path in each hierarchy, by its controllers; "" is that of v2
	Limits    map[string]string // values of its cgroup, by file name
	Devices   []string          // the names in /dev
	Mounts    []Mount
	Paths     map[string]Path // the paths that were asked for
}

// Mount is a line of mountinfo.
type Mount struct {
	Point, Root, Type, Source string
	Options                   []string // of this mount
	Super                     []string // of the file system
	Propagation               []string // shared:N, master:N …; none when it is private
}

// Path is what lies at a path.
type Path struct {
	Mode     string // as ls shows it
	UID, GID uint32
	Size     int64
	Link     string   // where a symbolic link leads; the rest is that of its target
	Writable bool     // for this process
	Names    []string // of a directory
	Text     string   // of a file, its first 64 KiB
	Error    string
}

// Look makes a report with these paths.
func Look(paths []string) Report {
	r := Report{
		Args: os.Args, Env: map[string]string{}, Status: Fields(read("/proc/self/status")), OOMScore: read("/proc/self/oom_score_adj"),
		UIDMap: oneLine(read("/proc/self/uid_map")), GIDMap: oneLine(read("/proc/self/gid_map")),
		Spaces: spaces(), Terminals: terminals(), Priority: priority(), Processes: processes(),
		Cgroup: cgroups(), Limits: limits(), Devices: names("/dev"), Mounts: mounts(read("/proc/self/mountinfo")), Paths: map[string]Path{},
	}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		r.Env[k] = v
	}
	r.Dir, _ = os.Getwd()
	r.Hostname, _ = os.Hostname()
	r.Input, _ = os.Readlink("/proc/self/fd/0")
	for _, p := range paths {
		r.Paths[p] = look(p)
	}
	return r
}

// Mount is the last mount on a path, which hides earlier ones; the zero Mount when there is none.
func (r Report) Mount(point string) Mount {
	for _, m := range slices.Backward(r.Mounts) {
		if m.Point == point {
			return m
		}
	}
	return Mount{}
}

// Fields are the lines of a status file of /proc, with single spaces.
func Fields(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		k, v, _ := strings.Cut(line, ":")
		out[k] = oneLine(v)
	}
	return out
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// read is the text of a file without the newline at its end.
func read(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(b), "\n")
}

func names(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
