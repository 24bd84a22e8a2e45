package oracle_test

import (
	"maps"
	"math/rand"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flowlet/flowlet/internal/manifest"
)

// atLeast is how many pods with up to three changes a run compares.
const atLeast = 10_000

// seeded is another sequence in each run, and tells how to get it again.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := time.Now().UnixNano()
	if text := os.Getenv("ORACLE_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("ORACLE_SEED=%d", seed)
	return rand.New(rand.NewSource(seed))
}

// change makes up to three of the changes of a walk, and returns which.
func change(r *rand.Rand, walk func(*mutator)) []string {
	all := &mutator{only: -1}
	walk(all)
	var out []string
	for range 1 + r.Intn(3) {
		one := &mutator{only: 1 + r.Intn(all.seen), record: func(what string) { out = append(out, what) }}
		walk(one)
	}
	return out
}

func TestRandomPods(t *testing.T) {
	r, set, refused := seeded(t), map[string]bool{}, 0
	pods := corpus(t)
	names := slices.Sorted(maps.Keys(pods))
	for i := range atLeast {
		if i%25 == 0 {
			sameDefaults(t, set, randomPod(r.Int63()))
			continue
		}
		pod := pods[names[r.Intn(len(names))]].DeepCopy()
		what := change(r, func(m *mutator) { m.walkPod(pod) })
		theirs := sameDefaults(t, set, pod)
		if slices.ContainsFunc(what, lightly) {
			continue
		}
		their, our := theirVerdict(t, theirs), manifest.Validate(theirs)
		if len(their) > 0 {
			refused++
		}
		if !same(their, our) && !nameOfABadVolume(their, our) {
			t.Errorf("%.300v\n  (-theirs +ours) %v", what, cmp.Diff(fields(their), fields(our)))
		}
	}
	require.Greater(t, refused, atLeast/10, "pods that are all valid test nothing")
	everyField(t, reflect.TypeOf(pods[names[0]].Spec), set)
}

// nameOfABadVolume: Kubernetes does not look at the name of a volume that is
// wrong otherwise; flowlet names everything at once.
func nameOfABadVolume(theirs, ours field.ErrorList) bool {
	const name = "spec.volumes.name"
	known := fields(theirs)
	return slices.ContainsFunc(known, func(path string) bool { return strings.HasPrefix(path, "spec.volumes.") }) &&
		slices.Equal(known, slices.DeleteFunc(fields(ours), func(path string) bool { return path == name && !slices.Contains(known, name) }))
}

// sameDefaults compares, and returns the pod with its defaults.
func sameDefaults(t *testing.T, set map[string]bool, pod *v1.Pod) *v1.Pod {
	t.Helper()
	note(set, reflect.ValueOf(pod.Spec))
	theirs, ours := theirDefaults(t, pod), pod.DeepCopy()
	manifest.Default(ours)
	if a, b := spelt(t, theirs), spelt(t, ours); a != b {
		t.Error(cmp.Diff(a, b), "(-theirs +ours)")
	}
	return theirs
}

// note adds the fields that are set, as TYPE.FIELD.
func note(set map[string]bool, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			note(set, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			note(set, v.Index(i))
		}
	case reflect.Struct:
		if value(v.Type()) {
			return
		}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !v.Field(i).IsZero() {
				set[v.Type().String()+"."+f.Name] = true
				note(set, v.Field(i))
			}
		}
	}
}

// value are the structs that stand for one value.
func value(t reflect.Type) bool {
	return t == reflect.TypeFor[resource.Quantity]() || t == reflect.TypeFor[intstr.IntOrString]() ||
		t == reflect.TypeFor[metav1.Time]() || t == reflect.TypeFor[metav1.Duration]() || t == reflect.TypeFor[metav1.MicroTime]()
}

// everyField fails for the fields below a type that were never set.
func everyField(t *testing.T, top reflect.Type, set map[string]bool) {
	t.Helper()
	var missing []string
	visited := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || visited[typ] || value(typ) {
			return
		}
		visited[typ] = true
		for i := range typ.NumField() {
			f := typ.Field(i)
			if !f.IsExported() || f.Type == reflect.TypeFor[metav1.ObjectMeta]() { // that of a claim's template, which static pods may not have
				continue
			}
			if key := typ.String() + "." + f.Name; !set[key] {
				missing = append(missing, key)
			}
			visit(f.Type)
		}
	}
	visit(top)
	require.Empty(t, missing, "never set in any of %d", atLeast)
}
