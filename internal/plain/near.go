package plain

import (
	"reflect"
	"regexp"
	"strings"
)

// Near gives the name that was likely meant by word: one that differs in case
// only, or in no more than two letters. Empty when there is none.
func Near(word string, names []string) string {
	best, found := min(2, len(word)/3)+1, ""
	for _, name := range names {
		if strings.EqualFold(word, name) {
			return name
		}
		if d := distance(word, name); d < best {
			best, found = d, name
		}
	}
	return found
}

// distance counts the letters to add, drop or change to come from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, corner+1)
		}
	}
	return row[len(b)]
}

var step = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// Meant gives the field that was likely meant by an unknown one. path is that
// of the unknown field inside of a t, such as spec.containers[0].imagePulPolicy.
// Empty when none is near.
func Meant(t reflect.Type, path string) string {
	steps := step.FindAllString(path, -1)
	for i, name := range steps {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if i == len(steps)-1 {
			return Near(name, fieldNames(t))
		}
		switch t.Kind() {
		case reflect.Slice, reflect.Map:
			t = t.Elem()
		case reflect.Struct:
			f, ok := t.FieldByNameFunc(func(n string) bool { f, _ := t.FieldByName(n); return jsonName(f) == name })
			if !ok {
				return ""
			}
			t = f.Type
		default:
			return ""
		}
	}
	return ""
}

func fieldNames(t reflect.Type) (names []string) {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		if name := jsonName(f); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
