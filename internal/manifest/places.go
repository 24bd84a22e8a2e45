package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// places finds the line of a field. Values never come from it: they are
// decoded as the kubelet decodes them, this is only the map.
type places struct{ root *yamlv3.Node }

// newPlaces reads one YAML or JSON document. A document that it cannot read
// gives an empty map, on which every line is unknown.
func newPlaces(doc []byte) places {
	var node yamlv3.Node
	if json.Valid(doc) { // its tabs can only be white space
		doc = bytes.ReplaceAll(doc, []byte("\t"), []byte(" "))
	}
	if err := yamlv3.NewDecoder(bytes.NewReader(doc)).Decode(&node); err != nil || len(node.Content) == 0 {
		return places{}
	}
	return places{root: node.Content[0]}
}

// line is where the field of that path stands; when it is not written, the
// line of the nearest field around it. 0 when there is no map.
func (p places) line(path string) int {
	if p.root == nil {
		return 0
	}
	line, node := p.root.Line, p.root
	for _, step := range splitPath(path) {
		at, value := child(node, step)
		if value == nil {
			break
		}
		line, node = at, value
	}
	return line
}

// child is the entry of a mapping or sequence: its line and its value.
func child(node *yamlv3.Node, step string) (int, *yamlv3.Node) {
	if node.Kind == yamlv3.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i].Line, node.Content[i+1]
			}
		}
	case yamlv3.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i].Line, node.Content[i]
		}
	}
	return 0, nil
}

// splitPath cuts spec.containers[0].resources.limits[example.com/gpu] into
// its steps. What stands in brackets is one step, dots and all.
func splitPath(path string) []string {
	var steps []string
	for path != "" {
		if strings.HasPrefix(path, "[") {
			end := strings.IndexByte(path, ']')
			if end < 0 {
				return append(steps, path[1:])
			}
			steps, path = append(steps, path[1:end]), path[end+1:]
			continue
		}
		path = strings.TrimPrefix(path, ".")
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		if end > 0 {
			steps = append(steps, path[:end])
		}
		path = path[end:]
	}
	return steps
}

// twice calls found for every key that its mapping holds more than once.
func (p places) twice(found func(path string, line int)) {
	if p.root != nil {
		twice(p.root, "", found)
	}
}

func twice(node *yamlv3.Node, path string, found func(path string, line int)) {
	switch node.Kind {
	case yamlv3.MappingNode:
		seen := map[string]bool{}
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			at := join(path, key.Value)
			if key.Kind == yamlv3.ScalarNode && key.Tag != "!!merge" && seen[key.Value] {
				found(at, key.Line)
			}
			seen[key.Value] = true
			twice(node.Content[i+1], at, found)
		}
	case yamlv3.SequenceNode:
		for i, item := range node.Content {
			twice(item, fmt.Sprintf("%s[%d]", path, i), found)
		}
	}
}

func join(path, key string) string {
	switch {
	case path == "":
		return key
	case strings.ContainsAny(key, ".[]/"):
		return path + "[" + key + "]"
	}
	return path + "." + key
}
