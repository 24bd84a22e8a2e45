package file

import (
	"crypto/sha256"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/manifest"
)

// reading is what one look at one file gave.
type reading struct {
	path    string
	ignored string // why it is no manifest
	data    []byte
	err     error // it could not be read
}

// record is what is known about one file.
type record struct {
	ignored string
	sum     [sha256.Size]byte // of what was last read
	latest  *version          // the last that was valid; nil: none yet
	err     error             // why what it holds now is not
	trouble trouble           // err or conflict, for the log
	clash   string            // the conflict
	told    bool              // ignored, or the warnings of latest, were logged
}

// trouble is what is wrong with a file, as a text, and since when.
type trouble struct {
	text  string
	since time.Time
	told  bool
}

func (t *trouble) set(text string, now time.Time) {
	if t.text != text {
		*t = trouble{text: text, since: now}
	}
}

// catalog knows the files and what was told about them. It is pure: time and
// contents come in, updates go out.
type catalog struct {
	node    string
	runs    func(types.UID) bool // pods that are on the node already
	records map[string]*record
	active  map[string]*version // by path: what was told to be desired
}

func newCatalog(node string, runs func(types.UID) bool) *catalog {
	return &catalog{node: node, runs: runs, records: map[string]*record{}, active: map[string]*version{}}
}

// apply takes in one complete look at all files and says what changed. With
// all set, pods that did not change are said again.
func (c *catalog) apply(now time.Time, files []reading, all bool) []manifest.Update {
	present := map[string]bool{}
	for _, f := range files {
		present[f.path] = true
		c.take(now, f)
	}
	maps.DeleteFunc(c.records, func(path string, _ *record) bool { return !present[path] })
	desired := c.resolve()
	for _, r := range c.records {
		switch {
		case r.err != nil:
			r.trouble.set(r.err.Error(), now)
		default:
			r.trouble.set(r.clash, now)
		}
	}
	return c.diff(now, desired, all)
}

// take updates the record of one file.
func (c *catalog) take(now time.Time, f reading) {
	r := c.records[f.path]
	if r == nil || r.ignored != f.ignored {
		r = &record{ignored: f.ignored}
		c.records[f.path] = r
	}
	if f.ignored != "" {
		return
	}
	if f.err != nil {
		r.err, r.sum = f.err, [sha256.Size]byte{}
		return
	}
	sum := sha256.Sum256(f.data)
	if r.sum == sum {
		return
	}
	r.sum = sum
	static, err := manifest.Load(f.path, f.data, manifest.Origin{
		Source: manifest.SourceFile, Location: f.path, NodeName: c.node, Seen: now,
	})
	if r.err = err; err == nil {
		r.accept(&version{Static: static, seen: now})
	}
}

// accept makes v the latest version. A pod that keeps its UID keeps the time
// at which it was first seen; one that says the same stays the same value.
func (r *record) accept(v *version) {
	old := r.latest
	r.latest = v
	switch {
	case old == nil || old.UID() != v.UID():
		r.told = false
	case old.Revision == v.Revision:
		v.Pod, v.seen = old.Pod, old.seen
	default:
		r.told = false
		v.Pod.Annotations[manifest.AnnotationSeen] = old.Pod.Annotations[manifest.AnnotationSeen]
	}
}

// samePod is true for two versions of one pod. A UID with another name is
// another pod: its old name has to be free before somebody else takes it.
func samePod(a, b *version) bool { return a.UID() == b.UID() && a.FullName() == b.FullName() }

// diff moves the active set to the desired one: first all that is gone, so
// that names and UIDs are free, then what is set.
func (c *catalog) diff(now time.Time, desired map[string]*version, all bool) []manifest.Update {
	var updates []manifest.Update
	for _, path := range slices.Sorted(maps.Keys(c.active)) {
		old, next := c.active[path], desired[path]
		if next == nil || !samePod(next, old) {
			updates = append(updates, old.Update(manifest.Gone, path, now))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(desired)) {
		old, next := c.active[path], desired[path]
		if all || old == nil || old.Pod != next.Pod {
			updates = append(updates, next.Update(manifest.Set, path, now))
		}
	}
	c.active = desired
	return updates
}
