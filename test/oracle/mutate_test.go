package oracle_test

import (
	"fmt"
	"reflect"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// mutant is a pod with one thing changed.
type mutant struct {
	what string // path and new value
	pod  *v1.Pod
}

// mutants changes everything that stands in the pod, one thing at a time:
// values become odd ones, lists lose or repeat an entry, what is set becomes
// unset and what is unset becomes set.
func mutants(pod *v1.Pod) []mutant {
	m := &mutator{pod: pod.DeepCopy()}
	m.walk("metadata.name", reflect.ValueOf(&m.pod.Name).Elem())
	m.walk("metadata.namespace", reflect.ValueOf(&m.pod.Namespace).Elem())
	m.walk("metadata.labels", reflect.ValueOf(&m.pod.Labels).Elem())
	m.walk("metadata.annotations", reflect.ValueOf(&m.pod.Annotations).Elem())
	m.walk("spec", reflect.ValueOf(&m.pod.Spec).Elem())
	return m.out
}

type mutator struct {
	pod *v1.Pod
	out []mutant
}

// try records the pod with v set to value, and puts v back.
func (m *mutator) try(path string, v reflect.Value, value any) {
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	v.Set(reflect.ValueOf(value).Convert(v.Type()))
	m.out = append(m.out, mutant{what: fmt.Sprintf("%s = %.40v", path, value), pod: m.pod.DeepCopy()})
	v.Set(old)
}

func oddStrings() []string {
	return []string{
		"", "ok", "Upper", "with_underscore", "dots.in.it", "a/b", "../up", "a/../b", "..hidden", "/abs", "-", "ends-", " blank", "=",
		strings.Repeat("a", 64), strings.Repeat("a", 254), "Always", "Never", "Localhost", "1.2.3.4", "cpu", "v2", "SIGTERM", "SIGRTMIN+3", "SIGRTMAX-15",
	}
}

func (m *mutator) walk(path string, v reflect.Value) {
	switch value := v.Interface().(type) {
	case resource.Quantity:
		for _, q := range []string{"0", "-1", "1500m", "3Mi", "1Ti"} {
			m.try(path, v, resource.MustParse(q))
		}
		return
	case intstr.IntOrString:
		for _, p := range []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(-1), intstr.FromInt32(70000), intstr.FromString(""), intstr.FromString("No Port"), intstr.FromString("http")} {
			m.try(path, v, p)
		}
		return
	case v1.ResourceList:
		m.resources(path, v, value)
		return
	}
	switch v.Kind() {
	case reflect.String:
		for _, s := range oddStrings() {
			m.try(path, v, s)
		}
	case reflect.Bool:
		m.try(path, v, !v.Bool())
	case reflect.Int32, reflect.Int64:
		for _, n := range []int64{-1, 0, 1, 2, 70000, 1 << 31} {
			if v.Kind() == reflect.Int64 || n < 1<<31 {
				m.try(path, v, n)
			}
		}
	case reflect.Pointer:
		m.pointer(path, v)
	case reflect.Slice:
		m.slice(path, v)
	case reflect.Map:
		m.stringMap(path, v)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				m.walk(join(path, f), v.Field(i))
			}
		}
	}
}

func join(path string, f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return path
	}
	return path + "." + name
}

func (m *mutator) pointer(path string, v reflect.Value) {
	if !v.IsNil() {
		m.try(path, v, reflect.Zero(v.Type()).Interface())
		m.walk(path, v.Elem())
		return
	}
	m.try(path, v, reflect.New(v.Type().Elem()).Interface())
	if v.Type().Elem().Kind() != reflect.Struct { // set it, then make that odd
		v.Set(reflect.New(v.Type().Elem()))
		m.walk(path, v.Elem())
		v.SetZero()
	}
}

func (m *mutator) slice(path string, v reflect.Value) {
	if v.Len() == 0 {
		m.try(path, v, reflect.Append(reflect.MakeSlice(v.Type(), 0, 1), reflect.Zero(v.Type().Elem())).Interface())
		return
	}
	m.try(path, v, reflect.Zero(v.Type()).Interface())
	m.try(path, v, reflect.AppendSlice(v.Slice(0, v.Len()), v.Slice(0, 1)).Interface())
	many := reflect.MakeSlice(v.Type(), 0, 40)
	for range 40 {
		many = reflect.Append(many, v.Index(0))
	}
	m.try(path, v, many.Interface())
	for i := range v.Len() {
		m.walk(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
	}
}

func (m *mutator) stringMap(path string, v reflect.Value) {
	if v.Type().Elem().Kind() != reflect.String {
		return
	}
	for _, s := range oddStrings() {
		m.try(path, v, map[string]string{s: "value"})
		m.try(path, v, map[string]string{"key": s})
	}
}

func (m *mutator) resources(path string, v reflect.Value, list v1.ResourceList) {
	for name := range list {
		for _, q := range []string{"0", "-1", "1500m", "1u", "3Mi", "1Ti"} {
			changed := list.DeepCopy()
			changed[name] = resource.MustParse(q)
			m.try(path, v, changed)
		}
		without := list.DeepCopy()
		delete(without, name)
		m.try(path, v, without)
	}
	for _, name := range []v1.ResourceName{"cpu", "pods", "storage", "hugepages-2Mi", "hugepages-x", "hugepages-1Gi", "Bad Name", "example.com/gpu", "requests.cpu", "kubernetes.io/x", "requests.example.com/x"} {
		changed := list.DeepCopy()
		if changed == nil {
			changed = v1.ResourceList{}
		}
		changed[name] = resource.MustParse("2Mi")
		m.try(path, v, changed)
	}
}
