package config

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
)

// A tree is a JSON object in memory. A path is dotted JSON names down to a
// field that is not itself a struct of fields: "maxPods", "logging.format",
// "evictionHard" (a map is one field).

// fieldPaths lists the paths of all fields of a KubeletConfiguration.
func fieldPaths() []string {
	return appendFields(nil, reflect.TypeFor[kubeletconfig.KubeletConfiguration](), "")
}

func appendFields(out []string, t reflect.Type, prefix string) []string {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		ft := f.Type
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		switch {
		case f.Name == "TypeMeta":
		case name == "" && f.Anonymous:
			out = appendFields(out, ft, prefix)
		case isLeaf(ft):
			out = append(out, prefix+name)
		default:
			out = appendFields(out, ft, prefix+name+".")
		}
	}
	return out
}

// isLeaf: anything but a struct, and structs with a form of their own, such
// as durations.
func isLeaf(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return true
	}
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// presentFields lists the known fields that the tree holds, sorted.
func presentFields(tree map[string]any) []string {
	var out []string
	for _, path := range fieldPaths() {
		if getPath(tree, path) != nil {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// getPath returns nil when there is nothing at the path.
func getPath(tree map[string]any, path string) any {
	var v any = tree
	for name := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// setPath makes the objects on the way.
func setPath(tree map[string]any, path string, value any) {
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		next, ok := tree[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			tree[name] = next
		}
		tree = next
	}
	tree[names[len(names)-1]] = value
}

// mergePatch applies a JSON merge patch (RFC 7396): objects are merged, null
// removes, everything else replaces.
func mergePatch(tree, patch map[string]any) {
	for name, value := range patch {
		next, isMap := value.(map[string]any)
		if value == nil {
			delete(tree, name)
			continue
		}
		if !isMap {
			tree[name] = value
			continue
		}
		old, ok := tree[name].(map[string]any)
		if !ok {
			old = map[string]any{}
			tree[name] = old
		}
		mergePatch(old, next)
	}
}

// isUnset reports that the decoded field is what the kubelet takes for "not
// set": a nil pointer, map or list, a zero number, duration or string.
func isUnset(kc *kubeletconfig.KubeletConfiguration, path string) bool {
	v := reflect.ValueOf(kc).Elem()
	for name := range strings.SplitSeq(path, ".") {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return true
			}
			v = v.Elem()
		}
		if v = fieldByJSON(v, name); !v.IsValid() {
			return true
		}
	}
	return v.IsZero()
}

func fieldByJSON(v reflect.Value, name string) reflect.Value {
	t := v.Type()
	for i := range t.NumField() {
		tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if tag == name {
			return v.Field(i)
		}
		if tag == "" && t.Field(i).Anonymous && t.Field(i).Name != "TypeMeta" {
			if f := fieldByJSON(v.Field(i), name); f.IsValid() {
				return f
			}
		}
	}
	return reflect.Value{}
}
