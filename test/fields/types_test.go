package fields_test

import (
	"reflect"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// apiField is a field of an API type; its section is the type's name, and its
// holders are the fields of other types that hold one.
type apiField struct {
	section, json, goName string
	owner                 string          // the type that declares it, where it is embedded in the section's
	holders               map[string]bool // JSON names
}

func (f apiField) String() string { return f.section + "." + f.json }

// apiFields lists the fields of the pod's spec and of all types below it, as
// far as open says that what a field holds is looked at by itself.
func apiFields(open func(f apiField) bool) []apiField {
	w := walker{open: open, seen: map[reflect.Type]bool{}, holders: map[string]map[string]bool{}}
	w.walk(reflect.TypeFor[v1.PodSpec]())
	return w.fields
}

type walker struct {
	open   func(f apiField) bool
	seen   map[reflect.Type]bool
	fields []apiField

	holders map[string]map[string]bool // by section
}

func (w *walker) walk(t reflect.Type) {
	if w.seen[t] {
		return
	}
	w.seen[t] = true
	var below []reflect.Type
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			continue // its own fields are visible ones
		}
		json, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		field := apiField{section: t.Name(), json: json, goName: f.Name, owner: declarer(t, f), holders: w.holdersOf(t.Name())}
		w.fields = append(w.fields, field)
		if held, ok := coreStruct(f.Type); ok {
			w.holdersOf(held.Name())[json] = true
			if w.open(field) {
				below = append(below, held)
			}
		}
	}
	for _, t := range below {
		w.walk(t)
	}
}

func declarer(t reflect.Type, f reflect.StructField) string {
	for _, i := range f.Index[:len(f.Index)-1] {
		t = t.Field(i).Type
	}
	return t.Name()
}

func (w *walker) holdersOf(section string) map[string]bool {
	if w.holders[section] == nil {
		w.holders[section] = map[string]bool{}
	}
	return w.holders[section]
}

// coreStruct returns the type of package core/v1 that a field holds.
func coreStruct(t reflect.Type) (reflect.Type, bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t, t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[v1.PodSpec]().PkgPath()
}
