package http

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/manifest"
)

// catalog knows the pods of the last good answer and what was told about
// them. It is pure: time and pods come in, updates go out.
type catalog struct {
	path   string
	runs   func(types.UID) bool // pods that are on the node already; may be nil
	latest []*version           // in the order of the answer
	active map[types.UID]*version
}

// apply takes in one good answer and says what changed: first all that is
// gone, so that names and UIDs are free, then what is set.
func (c *catalog) apply(now time.Time, pods []*manifest.Static) []manifest.Update {
	c.latest = c.latest[:0:0]
	for _, p := range pods {
		c.latest = append(c.latest, c.take(now, p))
	}
	desired := c.resolve()
	var updates []manifest.Update
	for _, old := range c.sorted() {
		if next := desired[old.UID()]; next == nil || !samePod(old, next) {
			updates = append(updates, old.Update(manifest.Gone, c.path, now))
		}
	}
	for _, v := range c.latest {
		old := c.active[v.UID()]
		if desired[v.UID()] == v && (old == nil || old.Pod != v.Pod) {
			updates = append(updates, v.Update(manifest.Set, c.path, now))
		}
	}
	c.active = desired
	return updates
}

// again says all that is set once more.
func (c *catalog) again(now time.Time) []manifest.Update {
	var updates []manifest.Update
	for _, v := range c.latest {
		if c.active[v.UID()] == v {
			updates = append(updates, v.Update(manifest.Set, c.path, now))
		}
	}
	return updates
}

// take makes a version of a pod. One that says what it said is the same value;
// one that keeps its UID keeps the time at which it was first seen.
func (c *catalog) take(now time.Time, p *manifest.Static) *version {
	v := &version{Static: p, seen: now}
	old := c.active[p.Pod.UID]
	switch {
	case old == nil:
	case old.Revision == p.Revision:
		v.Static, v.seen = old.Static, old.seen
	case samePod(old, v):
		p.Pod.Annotations[manifest.AnnotationSeen] = old.Pod.Annotations[manifest.AnnotationSeen]
	}
	return v
}

// samePod is true for two versions of one pod. A UID with another name is
// another pod: its old name has to be free before somebody else takes it.
func samePod(a, b *version) bool { return a.UID() == b.UID() && a.FullName() == b.FullName() }

// resolve says which versions are desired, by UID, and leaves a conflict in
// those that are not. The package comment has the rules.
func (c *catalog) resolve() map[types.UID]*version {
	order := slices.Clone(c.latest)
	slices.SortStableFunc(order, func(a, b *version) int { return c.rank(a) - c.rank(b) })
	desired, names := map[types.UID]*version{}, map[string]bool{}
	for _, v := range order {
		switch {
		case names[v.FullName()]:
			v.clash = fmt.Sprintf("pod %s is in the list more than once", v.FullName())
		case desired[v.UID()] != nil:
			v.clash = fmt.Sprintf("UID %s is already used by pod %s", v.UID(), desired[v.UID()].FullName())
		default:
			desired[v.UID()], names[v.FullName()] = v, true
		}
	}
	return desired
}

// rank is the strength of a claim, the strongest first.
func (c *catalog) rank(v *version) int {
	switch old := c.active[v.UID()]; {
	case old != nil && old.Pod == v.Pod:
		return 0
	case old != nil && samePod(old, v):
		return 1
	case c.runs != nil && c.runs(v.UID()):
		return 2
	}
	return 3
}

// sorted is what is set, by name.
func (c *catalog) sorted() []*version {
	return slices.SortedFunc(maps.Values(c.active), func(a, b *version) int { return strings.Compare(a.FullName(), b.FullName()) })
}

func (c *catalog) statuses() []PodStatus {
	out := make([]PodStatus, len(c.latest))
	for i, v := range c.latest {
		out[i] = v.status()
	}
	return out
}
