package file

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// claims say which file has a name and which has a UID.
type claims struct {
	names map[string]string
	uids  map[types.UID]string
}

// take gives name and UID of v to the file, or says who has them.
func (c *claims) take(path string, v *version) (conflict string) {
	if owner, taken := c.names[v.FullName()]; taken {
		return fmt.Sprintf("pod %s is already defined by %s", v.FullName(), owner)
	}
	if owner, taken := c.uids[v.UID()]; taken {
		return fmt.Sprintf("UID %s is already used by %s", v.UID(), owner)
	}
	c.names[v.FullName()], c.uids[v.UID()] = path, path
	return ""
}

// resolve says which version of which file is desired, and leaves a conflict
// in the record of every file that is not. The package comment has the rules.
func (c *catalog) resolve() map[string]*version {
	claims := &claims{names: map[string]string{}, uids: map[types.UID]string{}}
	desired := map[string]*version{}
	running, moved, first := c.byClaim()
	for _, path := range slices.Concat(running, moved, first) {
		r := c.records[path]
		if r.clash = claims.take(path, r.latest); r.clash == "" {
			desired[path] = r.latest
			continue
		}
		if old := c.active[path]; old != nil && claims.take(path, old) == "" {
			desired[path] = old
		}
	}
	return desired
}

// byClaim sorts the files that have a pod by the strength of their claim.
func (c *catalog) byClaim() (running, moved, first []string) {
	for _, path := range slices.Sorted(maps.Keys(c.records)) {
		next, old := c.records[path].latest, c.active[path]
		switch {
		case next == nil:
		case old == nil:
			first = append(first, path)
		case samePod(old, next):
			running = append(running, path)
		default:
			moved = append(moved, path)
		}
	}
	slices.SortStableFunc(first, func(a, b string) int { return c.onNode(b) - c.onNode(a) })
	return running, moved, first
}

// onNode is 1 for a file whose pod is on the node already, as after a restart
// of the agent.
func (c *catalog) onNode(path string) int {
	if c.runs != nil && c.runs(c.records[path].latest.UID()) {
		return 1
	}
	return 0
}
