package manifest_test

import (
	"testing"

	"github.com/flowlet/flowlet/internal/manifest"
)

// FuzzLoad: whatever stands in the file, the answer is a pod or an error.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"", web, "---\n---\n", "\ufeff", "{", "[]", "null", "a: &a [*a, *a]", "<<: *x", "? {a: b}\n: c\n",
		"apiVersion: v1\nkind: Pod\nmetadata: 3\n", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [null]}\n",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {volumes: [{name: v, projected: {sources: [{}]}}], securityContext: {sysctls: [{}]}}\n",
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"hugepages-0":"1","cpu":"1e999"}}}]}}`,
		"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {dnsPolicy: None, initContainers: [{lifecycle: {preStop: {}}}], resources: {limits: {cpu: 1}}}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := manifest.Load("fuzz.yaml", data, origin())
		if (s == nil) == (err == nil) {
			t.Fatalf("pod %v and error %v", s, err)
		}
	})
}
