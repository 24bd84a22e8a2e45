package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

// blameBytes bounds the search for the field that cannot be decoded: it
// decodes the manifest once for every field that it tries.
const blameBytes = 256 << 10

// blame finds the field that makes the tree fail to decode with that error,
// as far down as it can be told: it takes one member away at a time, and
// where that changes the error, the fault lies in that member. The decoders
// of the API types do not say where they failed; this does for all of them.
func blame(tree any, failure string) string {
	if raw, err := json.Marshal(tree); err != nil || len(raw) > blameBytes {
		return ""
	}
	path, node := "", tree
	for {
		next, value, ok := guilty(tree, node, failure)
		if !ok {
			return path
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

// guilty finds the member of node without which the error is another one.
func guilty(tree, node any, failure string) (step, value any, ok bool) {
	switch n := node.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(n)) {
			value := n[key]
			delete(n, key)
			differs := decodeFailure(tree) != failure
			n[key] = value
			if differs {
				return key, value, true
			}
		}
	case []any:
		for i, value := range n {
			n[i] = nil
			differs := decodeFailure(tree) != failure
			n[i] = value
			if differs {
				return i, value, true
			}
		}
	}
	return nil, nil, false
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
