package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/flowlet/flowlet/internal/plain"
)

// MaxBytes is the size above which a manifest is refused, as by the kubelet.
const MaxBytes = 10 << 20

// Manifest is one decoded manifest.
type Manifest struct {
	File     string    // where it came from, for messages
	Pod      *v1.Pod   // as the user wrote it: no defaults, no new name
	Warnings []Problem // unknown fields and repeated keys

	canonical []byte // what the user wrote, without its spelling
	places    places
}

// Decode reads one v1.Pod, written in YAML or JSON. file is used in messages
// only. The error is an *Error.
//
// A file holds one pod: several documents, or a list, are refused with the
// advice to split them. (The kubelet reads the first document and drops the
// others in silence.)
func Decode(file string, data []byte) (*Manifest, error) {
	if len(data) > MaxBytes {
		return nil, fail(file, 0, "file is larger than %d MiB", MaxBytes>>20)
	}
	doc, err := onlyDocument(file, data)
	if err != nil {
		return nil, err
	}
	raw, err := toJSON(doc)
	if err != nil {
		return nil, fail(file, lineIn(err), "not valid YAML or JSON (half-written?): %s", firstLine(err))
	}
	tree, canonical, err := canonicalise(raw)
	if err != nil {
		return nil, fail(file, 0, "not valid YAML or JSON: %s", firstLine(err))
	}
	m := &Manifest{File: file, canonical: canonical, places: newPlaces(doc)}
	if err := m.checkKind(tree); err != nil {
		return nil, err
	}
	if err := m.decodePod(raw, tree); err != nil {
		return nil, err
	}
	m.places.twice(func(path string, line int) {
		m.Warnings = append(m.Warnings, Problem{
			File: file, Line: line, Field: path,
			Message: fmt.Sprintf("%s is written more than once, the last value counts", path),
		})
	})
	if m.Pod.Name == "" {
		return nil, &Error{Problems: []Problem{m.problemAt("metadata.name", "metadata.name missing")}}
	}
	return m, nil
}

// toJSON leaves alone what is JSON: it may have tabs, which YAML may not.
func toJSON(doc []byte) ([]byte, error) {
	if json.Valid(doc) {
		return doc, nil
	}
	return yaml.YAMLToJSON(doc)
}

// onlyDocument blanks out empty documents before and after the pod, so that
// lines keep their numbers.
func onlyDocument(file string, data []byte) ([]byte, error) {
	lines := bytes.SplitAfter(data, []byte("\n"))
	starts, ends := []int{0}, []int{}
	for i, line := range lines {
		if isMarker(line) {
			starts, ends = append(starts, i), append(ends, i)
		}
	}
	ends = append(ends, len(lines))

	found := -1
	for d := range starts {
		if isBlank(lines[starts[d]:ends[d]]) {
			continue
		}
		if found >= 0 {
			return nil, fail(file, starts[d]+1,
				"holds several YAML documents; a manifest is one pod: split it into one file for each")
		}
		found = d
	}
	if found < 0 {
		return nil, fail(file, 0, "file is empty")
	}
	pad := bytes.Repeat([]byte("\n"), starts[found])
	return append(pad, bytes.Join(lines[starts[found]:ends[found]], nil)...), nil
}

// isMarker is true for a line that starts a YAML document.
func isMarker(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(rest) == 0 || bytes.ContainsRune([]byte(" \t\r\n"), rune(rest[0])))
}

// isBlank is true when a document holds markers, comments and directives only.
func isBlank(lines [][]byte) bool {
	for _, line := range lines {
		text := bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
		if isMarker(line) {
			text = bytes.TrimSpace(text[len("---"):])
		}
		switch {
		case len(text) == 0, text[0] == '#', text[0] == '%', string(text) == "...":
		default:
			return false
		}
	}
	return true
}

// checkKind refuses what is not a v1 Pod.
func (m *Manifest) checkKind(tree any) error {
	object, ok := tree.(map[string]any)
	if !ok {
		return fail(m.File, m.places.line(""), "holds no object; a manifest is one v1 Pod")
	}
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	switch {
	case kind == "":
		return &Error{Problems: []Problem{m.problemAt("kind", "kind is missing; a manifest begins with apiVersion: v1 and kind: Pod")}}
	case apiVersion == "":
		return &Error{Problems: []Problem{m.problemAt("apiVersion", "apiVersion is missing; a manifest begins with apiVersion: v1 and kind: Pod")}}
	case kind == "PodList" || kind == "List":
		return &Error{Problems: []Problem{m.problemAt("kind",
			fmt.Sprintf("kind is %s; a manifest is one pod: split it into one file for each", kind))}}
	case kind != "Pod":
		return &Error{Problems: []Problem{m.problemAt("kind", fmt.Sprintf("kind is %q, must be Pod: flowlet runs pods only", kind))}}
	case apiVersion != "v1":
		return &Error{Problems: []Problem{m.problemAt("apiVersion", fmt.Sprintf("apiVersion is %q, must be v1", apiVersion))}}
	}
	return nil
}

// decodePod fills m.Pod and the warnings about unknown fields.
func (m *Manifest) decodePod(raw []byte, tree any) error {
	m.Pod = &v1.Pod{}
	strict, err := kjson.UnmarshalStrict(raw, m.Pod, kjson.DisallowUnknownFields)
	if err != nil {
		path, value := blame(tree, err.Error())
		message := plain.Decode(err, value)
		if path != "" {
			message = path + ": " + message
		}
		return &Error{Problems: []Problem{m.problemAt(path, message)}}
	}
	for _, err := range strict {
		path := ""
		if fe, ok := err.(kjson.FieldError); ok { //nolint:errorlint // the strict errors are not wrapped
			path = fe.FieldPath()
		}
		message := err.Error() + ", it is ignored"
		if meant := plain.Meant(reflect.TypeFor[v1.Pod](), path); meant != "" {
			message += ": is " + meant + " meant?"
		}
		m.Warnings = append(m.Warnings, m.problemAt(path, message))
	}
	return nil
}

// canonicalise gives what the JSON says in one spelling: keys sorted, no
// white space, one way to write a number, no members that are null (they say
// the same as no member).
func canonicalise(raw []byte) (tree any, canonical []byte, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		return nil, nil, err
	}
	canonical, err = json.Marshal(normal(tree))
	return tree, canonical, err
}

func normal(tree any) any {
	switch t := tree.(type) {
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, v := range t {
			if v != nil {
				out[k] = normal(v)
			}
		}
		return out
	case []any:
		out := make([]any, len(t))
		for i, v := range t {
			out[i] = normal(v)
		}
		return out
	case json.Number:
		return normalNumber(t)
	}
	return tree
}

// normalNumber is an integer where the number is one, however it is written.
func normalNumber(n json.Number) any {
	if i, err := n.Int64(); err == nil {
		return i
	}
	if f, err := n.Float64(); err == nil {
		return f
	}
	return n
}

var yamlLine = regexp.MustCompile(`line (\d+):`)

// lineIn reads the line number out of a YAML error, 0 when there is none.
func lineIn(err error) int {
	match := yamlLine.FindStringSubmatch(err.Error())
	if match == nil {
		return 0
	}
	line, _ := strconv.Atoi(match[1])
	return line
}

func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}
