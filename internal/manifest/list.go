package manifest

import (
	"encoding/json"
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"
)

// LoadAll loads one Pod, or a list of pods (kind PodList or List), which is
// what a manifest URL may serve. It is all or nothing: one bad pod refuses the
// list, so that a bad reply changes nothing. An empty list is no error. In a
// list, problems name the item instead of the line.
func LoadAll(file string, data []byte, o Origin) ([]*Static, error) {
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if len(data) <= MaxBytes {
		_ = yaml.Unmarshal(data, &list) // what does not parse, Load says better
	}
	if list.Kind != "PodList" && list.Kind != "List" {
		s, err := Load(file, data, o)
		if err != nil {
			return nil, err
		}
		return []*Static{s}, nil
	}
	pods := make([]*Static, 0, len(list.Items))
	for i, item := range list.Items {
		name := fmt.Sprintf("%s: items[%d]", file, i)
		s, err := Load(name, asPod(item), o)
		if err != nil {
			return nil, withoutLines(err)
		}
		forgetLines(s.Warnings)
		pods = append(pods, s)
	}
	return pods, nil
}

// asPod says what an item is where the list has said it already.
func asPod(item json.RawMessage) []byte {
	var object map[string]any
	if err := json.Unmarshal(item, &object); err != nil || object == nil {
		return item
	}
	if _, ok := object["kind"]; !ok {
		object["kind"] = "Pod"
	}
	if _, ok := object["apiVersion"]; !ok {
		object["apiVersion"] = "v1"
	}
	whole, err := json.Marshal(object)
	if err != nil {
		return item
	}
	return whole
}

// withoutLines drops the line numbers, which are those of the item alone.
func withoutLines(err error) error {
	var e *Error
	if errors.As(err, &e) {
		forgetLines(e.Problems)
	}
	return err
}

func forgetLines(problems []Problem) {
	for i := range problems {
		problems[i].Line = 0
	}
}
