package oracle_test

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"github.com/flowlet/flowlet/internal/manifest"
)

// randomPods is how many pods the defaults are compared on.
const randomPods = 2_000

func TestDefaultsOfRandomPods(t *testing.T) {
	first := time.Now().UnixNano()
	t.Logf("seeds from %d", first)
	for seed := first; seed < first+randomPods; seed++ {
		pod := randomPod(seed)
		ours := pod.DeepCopy()
		manifest.Default(ours)
		require.Empty(t, cmp.Diff(spelt(t, theirDefaults(t, pod)), spelt(t, ours)), "seed %d (-theirs +ours)", seed)
		again := ours.DeepCopy()
		manifest.Default(again)
		require.Empty(t, cmp.Diff(spelt(t, ours), spelt(t, again)), "seed %d: not idempotent", seed)
	}
}

func TestDefaultsOfTheCorpus(t *testing.T) {
	for name, pod := range corpus(t) {
		t.Run(name, func(t *testing.T) {
			ours := pod.DeepCopy()
			manifest.Default(ours)
			require.Empty(t, cmp.Diff(spelt(t, theirDefaults(t, pod)), spelt(t, ours)), "(-theirs +ours)")
		})
	}
}

func spelt(t *testing.T, pod *v1.Pod) string {
	t.Helper()
	out, err := json.MarshalIndent(pod, "", " ")
	require.NoError(t, err)
	return string(out)
}

// randomPod fills everything with something, and then takes much of it away
// again, so that there is something to default everywhere.
func randomPod(seed int64) *v1.Pod {
	fill := randfill.NewWithSeed(seed).NilChance(0.2).NumElements(0, 2).MaxDepth(14).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewScaledQuantity(c.Int63n(5000), []resource.Scale{resource.Micro, resource.Milli, 0, resource.Mega}[c.Intn(4)])
		},
		func(list *v1.ResourceList, c randfill.Continue) {
			*list = v1.ResourceList{}
			for _, name := range []v1.ResourceName{"cpu", "memory", "hugepages-2Mi", "example.com/gpu", "ephemeral-storage"} {
				if c.Intn(2) == 0 {
					q := resource.Quantity{}
					c.Fill(&q)
					(*list)[name] = q
				}
			}
		},
		func(*metav1.Time, randfill.Continue) {},
		func(*metav1.FieldsV1, randfill.Continue) {},
		func(*v1.PodStatus, randfill.Continue) {}, // a manifest's status does not count
		func(*metav1.ObjectMeta, randfill.Continue) {},
	)
	pod := &v1.Pod{}
	fill.Fill(pod)
	r := rand.New(rand.NewSource(seed))
	takeAway(r, reflect.ValueOf(&pod.Spec).Elem())
	images := []string{"", "a", "a:latest", "a:1", "a@sha256:" + hex64, "a:latest@sha256:" + hex64, "registry:5000/a/b", "Not An Image"}
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Image = images[r.Intn(len(images))]
	}
	for i := range pod.Spec.Volumes {
		if v := pod.Spec.Volumes[i].Image; v != nil {
			v.Reference = images[r.Intn(len(images))]
		}
	}
	return pod
}

const hex64 = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// takeAway zeroes every field with a chance of one in three.
func takeAway(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			takeAway(r, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			takeAway(r, v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[resource.Quantity]() {
			return
		}
		for i := range v.NumField() {
			if !v.Field(i).CanSet() {
				continue
			}
			if r.Intn(3) == 0 && v.Field(i).Kind() != reflect.Slice {
				v.Field(i).SetZero()
				continue
			}
			takeAway(r, v.Field(i))
		}
	}
}
