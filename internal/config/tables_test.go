package config_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/yaml"

	"github.com/flowlet/flowlet/internal/config"
)

func TestEveryFieldIsInExactlyOneList(t *testing.T) {
	lists := map[string]map[string]bool{
		"acting": config.FieldSet(config.FieldsActing), "inert": config.FieldSet(config.FieldsInert), "not yet": config.FieldSet(config.FieldsNotYet),
	}
	known := map[string]bool{}
	for _, path := range config.FieldPaths() {
		known[path] = true
		var in []string
		for name, list := range lists {
			if list[path] {
				in = append(in, name)
			}
		}
		require.Len(t, in, 1, "%s is in %v", path, in)
	}
	for name, list := range lists {
		for path := range list {
			require.True(t, known[path], "%s: %s is no field", name, path)
		}
	}
	for path := range config.FieldSet(config.PathFields) {
		require.True(t, known[path], "%s is no field", path)
	}
	for _, path := range config.FlagPaths() {
		require.True(t, known[path], "flag for %s, which is no field", path)
	}
}

func TestEveryGateIsListedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range config.GateNames() {
		for _, name := range row {
			require.False(t, seen[name], name)
			seen[name] = true
		}
	}
	require.Len(t, seen, 250)
	for name := range config.FieldSet(config.GatesActing) {
		require.True(t, seen[name], name)
	}
	c := load(t, nil)
	for name, want := range map[featuregate.Feature]bool{
		"InPlacePodVerticalScaling": true, "SELinuxMount": true, "MemoryQoS": true, "EventedPLEG": false, "PodAndContainerStatsFromCRI": false,
	} {
		require.Equal(t, want, c.Gates.Enabled(name), name)
	}
}

// The golden file was compared by hand with the defaults of kubelet v1.37.2.
func TestDefaults(t *testing.T) {
	got, err := yaml.Marshal(config.Defaults())
	require.NoError(t, err)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile("testdata/defaults.yaml", got, 0o600))
	}
	want, err := os.ReadFile("testdata/defaults.yaml")
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), string(got)))
}

func TestMergePatchFollowsRFC7396(t *testing.T) {
	tree := map[string]any{"keep": 1, "drop": 2, "map": map[string]any{"a": 1, "b": 2}, "list": []any{1}, "scalar": 1}
	config.MergePatch(tree, map[string]any{
		"drop": nil, "map": map[string]any{"a": nil, "c": 3}, "list": []any{2, 3},
		"scalar": map[string]any{"x": map[string]any{"y": nil, "z": 1}},
	})
	require.Empty(t, cmp.Diff(map[string]any{
		"keep": 1, "map": map[string]any{"b": 2, "c": 3}, "list": []any{2, 3}, "scalar": map[string]any{"x": map[string]any{"z": 1}},
	}, tree))
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(header + "maxPods: 3\n"))
	f.Add([]byte(header + "authentication: {webhook: 7}\nlogging: {flushFrequency: x}\n"))
	f.Add([]byte("{\"kind\": 1}"))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte(header + "evictionHard: {1: 2}\ntracing:\n- \n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := config.Decode("f", data)
		if err != nil {
			require.ErrorContains(t, err, "f: ")
		}
	})
}
