package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

// blameBytes bounds the search for the field that cannot be decoded, which
// decodes the manifest once for every field that it tries: some tenths of a
// second for a manifest that is no pod at all, hundreds of tries for one that
// nearly is.
const blameBytes = 16 << 20

// blame finds the field that makes the tree fail to decode with that error,
// as far down as it can be told: it takes one member away at a time, and
// where that changes the error, the fault lies in that member. The decoders
// of the API types do not say where they failed; this does for all of them.
// node is the value of that field.
func blame(tree any, failure string) (path string, node any) {
	raw, err := json.Marshal(tree)
	if err != nil {
		return "", nil
	}
	s := &search{tree: tree, failure: failure, tries: blameBytes / len(raw)}
	node = tree
	for {
		next, value, ok := s.guilty(node)
		if !ok {
			return path, node
		}
		switch step := next.(type) {
		case string:
			path = join(path, step)
		case int:
			path = fmt.Sprintf("%s[%d]", path, step)
		}
		node = value
	}
}

// search is one search for what makes a tree fail.
type search struct {
	tree    any
	failure string
	tries   int // that are left
}

// guilty finds the member of node without which the error is another one.
func (s *search) guilty(node any) (step, value any, ok bool) {
	switch n := node.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(n)) {
			value := n[key]
			delete(n, key)
			differs := s.differs()
			n[key] = value
			if differs {
				return key, value, true
			}
		}
	case []any:
		for i, value := range n {
			n[i] = nil
			differs := s.differs()
			n[i] = value
			if differs {
				return i, value, true
			}
		}
	}
	return nil, nil, false
}

// differs says whether the tree, as it is now, fails in another way or not at
// all. When no tries are left it says no, which ends the search.
func (s *search) differs() bool {
	if s.tries <= 0 {
		return false
	}
	s.tries--
	return decodeFailure(s.tree) != s.failure
}

func decodeFailure(tree any) string {
	raw, err := json.Marshal(tree)
	if err != nil {
		return err.Error()
	}
	if _, err := kjson.UnmarshalStrict(raw, &v1.Pod{}); err != nil {
		return err.Error()
	}
	return ""
}
