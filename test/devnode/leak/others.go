package leak

import (
	"regexp"
	"slices"
	"strings"
)

var (
	nodeCgroup = regexp.MustCompile(`^/sys/fs/cgroup/.*flowlet-([0-9a-f]{6})$`)
	nameless   = regexp.MustCompile(`/veth|: \d+ /bin/|/tmp/flowlet|debian-containerd`)
	ofAgents   = regexp.MustCompile(`flowlet|kubepods| gives `)
	ofNodes    = regexp.MustCompile(`containerd|runc|bin/flowlet|/bin/(demo|pause)|bin/devnode|sleep 1000`)
)

// Own leaves in a diff what a node may have left, and takes out what has nothing to do with nodes, or belongs to another
// node that is on the machine at the moment: test packages may run side by side. own says whether an ID is the node's. What
// bears no name is let pass while there are other nodes.
func Own(diff []string, now Snapshot, own func(id string) bool) []string {
	var others []string
	for _, path := range now["cgroup"] {
		if m := nodeCgroup.FindStringSubmatch(path); m != nil && !own(m[1]) {
			others = append(others, "flowlet"+m[1], "flowlet-"+m[1])
		}
	}
	return slices.DeleteFunc(slices.Clone(diff), func(d string) bool {
		switch {
		case slices.ContainsFunc(others, func(name string) bool { return strings.Contains(d, name) }):
			return true
		case len(others) > 0 && nameless.MatchString(d):
			return true
		}
		if strings.HasPrefix(d, "cgroup: ") {
			return !ofAgents.MatchString(d)
		}
		return strings.HasPrefix(d, "process: ") && (!ofNodes.MatchString(d) || strings.Contains(d, "go-build"))
	})
}
