package oracle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/manifest"
)

// spellings are ways to write a pod called NAME: what a kubelet's file source
// takes, flowlet takes, and what it refuses, flowlet refuses.
var spellings = map[string]string{
	"plain":         "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {containers: [{name: c, image: i}]}\n",
	"json-tabs":     "{\n\t\"apiVersion\":\"v1\",\"kind\":\"Pod\",\n\t\"metadata\":{\"name\":\"NAME\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}",
	"twice":         "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {containers: [{name: c, image: i, image: j}]}\n",
	"unknown":       "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {colour: red, containers: [{name: c, image: i}]}\n",
	"wrong-case":    "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {Containers: [{name: c, image: i}]}\n",
	"yes":           "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {hostNetwork: yes, containers: [{name: c, image: i}]}\n",
	"yes-string":    "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {hostNetwork: \"true\", containers: [{name: c, image: i}]}\n",
	"number-name":   "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {containers: [{name: 1, image: i}]}\n",
	"octal":         "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {containers: [{name: c, image: i}], volumes: [{name: v, downwardAPI: {defaultMode: 0644}}]}\n",
	"float-port":    "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {containers: [{name: c, image: i, ports: [{containerPort: 80.0}]}]}\n",
	"fraction-port": "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {containers: [{name: c, image: i, ports: [{containerPort: 80.5}]}]}\n",
	"number-cpu":    "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {containers: [{name: c, image: i, resources: {limits: {cpu: 0.5}}}]}\n",
	"bad-quantity":  "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {containers: [{name: c, image: i, resources: {limits: {cpu: 1 x}}}]}\n",
	"anchors":       "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {initContainers: [&c {name: b, image: i}], containers: [{<<: *c, name: c}]}\n",
	"null-spec":     "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: null\n",
	"no-name":       "apiVersion: v1\nkind: Pod\nmetadata: {generateName: NAME}\nspec: {containers: [{name: c, image: i}]}\n",
	"no-version":    "kind: Pod\nmetadata: {name: NAME}\nspec: {containers: [{name: c, image: i}]}\n",
	"other-kind":    "apiVersion: v1\nkind: Service\nmetadata: {name: NAME}\nspec: {ports: [{port: 1}]}\n",
	"list":          "apiVersion: v1\nkind: PodList\nitems: []\n",
	"half":          "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec: {containers: [{name: c, ima",
	"empty":         "",
	"status":        "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME, creationTimestamp: null}\nspec: {containers: [{name: c, image: i}]}\nstatus: {phase: Running}\n",
	"bad-time":      "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME, creationTimestamp: today}\nspec: {containers: [{name: c, image: i}]}\n",
}

func TestSpellings(t *testing.T) {
	dir := t.TempDir()
	for name, text := range spellings {
		path := filepath.Join(dir, name+".yaml")
		require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "NAME", name)), 0o600))
	}
	theirs := kubeletPods(t, dir)
	require.NotEmpty(t, theirs)
	for name, text := range spellings {
		t.Run(name, func(t *testing.T) {
			s, err := manifest.Load(name, []byte(strings.ReplaceAll(text, "NAME", name)), manifest.Origin{
				Source: manifest.SourceFile, Location: name, NodeName: node, Seen: time.Now(),
			})
			want, taken := theirs[manifest.PodName(name, node)]
			require.Equal(t, taken, err == nil, "the kubelet takes it: %v, flowlet says: %v", taken, err)
			if taken {
				require.Equal(t, spelt(t, withoutIdentity(want)), spelt(t, withoutIdentity(s.Pod)))
			}
		})
	}
}
