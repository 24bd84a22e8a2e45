package oracle_test

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	var out []mutant
	pod = pod.DeepCopy()
	m := &mutator{record: func(what string) { out = append(out, mutant{what, pod.DeepCopy()}) }}
	m.walkPod(pod)
	return out
}

// mutator changes one thing at a time, tells record, and puts it back.
type mutator struct {
	record func(what string)
	only   int // when it is set, only this change is made, and stays
	seen   int
}

func (m *mutator) walkPod(pod *v1.Pod) {
	m.walk("metadata.name", reflect.ValueOf(&pod.Name).Elem())
	m.walk("metadata.namespace", reflect.ValueOf(&pod.Namespace).Elem())
	m.walk("metadata.labels", reflect.ValueOf(&pod.Labels).Elem())
	m.walk("metadata.annotations", reflect.ValueOf(&pod.Annotations).Elem())
	m.walk("spec", reflect.ValueOf(&pod.Spec).Elem())
}

// done: the only change is made, and what was below it may be gone.
func (m *mutator) done() bool { return m.only > 0 && m.seen >= m.only }

// try records the object with v set to value, and puts v back.
func (m *mutator) try(path string, v reflect.Value, value any) {
	m.seen++
	if m.only != 0 && m.seen != m.only {
		return
	}
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	v.Set(reflect.ValueOf(value).Convert(v.Type()))
	m.record(fmt.Sprintf("%s = %.40v", path, value))
	if m.only == 0 {
		v.Set(old)
	}
}

var odds = []string{
	"", "ok", "Upper", "with_underscore", "dots.in.it", "a/b", "../up", "a/../b", "..hidden", "/abs", "-", "ends-", " blank", "=",
	strings.Repeat("a", 64), strings.Repeat("a", 254), "Always", "Never", "Localhost", "1.2.3.4", "cpu", "v2", "SIGTERM", "SIGRTMIN+3", "SIGRTMAX-15",
}

func (m *mutator) walk(path string, v reflect.Value) {
	if m.done() {
		return
	}
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
	case metav1.Duration:
		for _, d := range []time.Duration{-time.Second, 0, time.Microsecond, time.Second, 150 * time.Millisecond, time.Hour} {
			m.try(path, v, metav1.Duration{Duration: d})
		}
		return
	case v1.ResourceList:
		m.resources(path, v, value)
		return
	}
	switch v.Kind() {
	case reflect.String:
		for _, s := range odds {
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
	case reflect.Uint32:
		m.try(path, v, uint32(7))
		m.try(path, v, uint32(1<<31))
	case reflect.Float64:
		for _, f := range []float64{-1, 0, 0.5, 1, 1.5} {
			m.try(path, v, f)
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
		if !m.done() {
			m.walk(path, v.Elem())
		}
		return
	}
	m.try(path, v, reflect.New(v.Type().Elem()).Interface())
	if !m.done() && v.Type().Elem().Kind() != reflect.Struct { // set it, then make that odd
		fresh := reflect.New(v.Type().Elem())
		v.Set(fresh)
		before := m.seen
		m.walk(path, v.Elem())
		if m.only <= before || m.only > m.seen {
			v.SetZero()
		}
	}
}

func (m *mutator) slice(path string, v reflect.Value) {
	if v.Len() == 0 {
		m.try(path, v, reflect.Append(reflect.MakeSlice(v.Type(), 0, 1), reflect.Zero(v.Type().Elem())).Interface())
		return
	}
	m.try(path, v, reflect.Zero(v.Type()).Interface())
	if m.done() {
		return
	}
	m.try(path, v, reflect.AppendSlice(v.Slice(0, v.Len()), v.Slice(0, 1)).Interface())
	if m.done() {
		return
	}
	many := reflect.MakeSlice(v.Type(), 0, 40)
	for range 40 {
		many = reflect.Append(many, v.Index(0))
	}
	m.try(path, v, many.Interface())
	if m.done() {
		return
	}
	for i := range v.Len() {
		m.walk(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
	}
}

func (m *mutator) stringMap(path string, v reflect.Value) {
	if v.Type().Elem().Kind() != reflect.String {
		return
	}
	for _, s := range odds {
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
