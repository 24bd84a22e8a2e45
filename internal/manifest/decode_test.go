package manifest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/manifest"
)

const web = `apiVersion: v1
kind: Pod
metadata:
  name: web
  labels:
    app: web
spec:
  containers:
  - name: app
    image: registry.example/app:1
    ports:
    - containerPort: 80
`

func TestDecodeReadsWhatAKubeletReads(t *testing.T) {
	cases := map[string]string{
		"yaml":                    web,
		"json":                    `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"registry.example/app:1","ports":[{"containerPort":80}]}]}}`,
		"document markers":        "---\n" + web + "---\n# the end\n...\n",
		"comment document before": "# made by a tool\n---\n" + web,
		"windows line ends":       strings.ReplaceAll(web, "\n", "\r\n"),
		"byte order mark":         "\ufeff" + web,
	}
	for name, data := range cases {
		t.Run(name, func(t *testing.T) {
			m, err := manifest.Decode("web.yaml", []byte(data))
			require.NoError(t, err)
			require.Empty(t, m.Warnings)
			require.Equal(t, "web", m.Pod.Name)
			require.Equal(t, int32(80), m.Pod.Spec.Containers[0].Ports[0].ContainerPort)
		})
	}
}

func TestDecodeSaysWhatIsWrongAndWhere(t *testing.T) {
	cases := map[string]struct{ data, want string }{
		"empty":             {"", "web.yaml: file is empty"},
		"only comments":     {"# nothing yet\n---\n", "web.yaml: file is empty"},
		"several documents": {web + "---\n" + web, "web.yaml:13: holds several YAML documents; a manifest is one pod: split it into one file for each"},
		"list":              {"apiVersion: v1\nkind: List\nitems: []\n", "web.yaml:2: kind is List; a manifest is one pod: split it into one file for each"},
		"wrong kind":        {strings.Replace(web, "kind: Pod", "kind: Deployment", 1), `web.yaml:2: kind is "Deployment", must be Pod`},
		"no kind":           {strings.Replace(web, "kind: Pod\n", "", 1), "web.yaml:1: kind is missing; a manifest begins with apiVersion: v1 and kind: Pod"},
		"wrong version":     {strings.Replace(web, "apiVersion: v1", "apiVersion: v2", 1), `web.yaml:1: apiVersion is "v2", must be v1`},
		"not an object":     {"- a\n- b\n", "web.yaml:1: holds no object; a manifest is one v1 Pod"},
		"no name":           {strings.Replace(web, "  name: web\n", "", 1), "web.yaml:3: metadata.name missing"},
		"wrong type":        {strings.Replace(web, "containerPort: 80", "containerPort: eighty", 1), "web.yaml:12: spec.containers[0].ports[0].containerPort: is a string, must be an integer"},
		"bad quantity": {
			web + "    resources:\n      limits:\n        memory: 12 Mib\n",
			`web.yaml:15: spec.containers[0].resources.limits.memory: "12 Mib" is no quantity: it must be a number`,
		},
		"half-written":      {web[:len(web)-len("rPort: 80\n")] + "\n  x", "not valid YAML or JSON (half-written?)"},
		"half-written json": {`{"apiVersion":"v1","kind":"Pod","metadata":{"na`, "not valid YAML or JSON (half-written?)"},
		"too large":         {strings.Repeat(" ", manifest.MaxBytes+1), "web.yaml: file is larger than 10 MiB"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := manifest.Decode("web.yaml", []byte(c.data))
			require.ErrorContains(t, err, c.want)
			var typed *manifest.Error
			require.ErrorAs(t, err, &typed)
			require.Equal(t, "web.yaml", typed.Problems[0].File)
		})
	}
}

func TestJSONWithTabsHasLinesToo(t *testing.T) {
	data := "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Pod\",\n\t\"metadata\": {\"name\": \"a\"},\n\t\"colour\": 1\n}\n"
	m, err := manifest.Decode("a.json", []byte(data))
	require.NoError(t, err)
	require.Len(t, m.Warnings, 1)
	require.Equal(t, 5, m.Warnings[0].Line)
}

// A manifest that is nothing like a pod must not keep the agent busy.
func TestDecodeIsQuickToGiveUp(t *testing.T) {
	huge := web + "    args:\n" + strings.Repeat("    - arg\n", 20000) + "  priority: high\n"
	began := time.Now()
	_, err := manifest.Decode("web.yaml", []byte(huge))
	require.ErrorContains(t, err, "spec.priority: is a string, must be an integer")
	require.Less(t, time.Since(began), 10*time.Second)
}

func TestUnknownAndRepeatedFieldsAreWarnings(t *testing.T) {
	data := strings.Replace(web, "    image:", "    imagePolicy: Always\n    image: first\n    image:", 1)
	m, err := manifest.Decode("web.yaml", []byte(data))
	require.NoError(t, err)
	require.Equal(t, "registry.example/app:1", m.Pod.Spec.Containers[0].Image, "the last value counts")
	var got []string
	for _, w := range m.Warnings {
		got = append(got, w.String())
	}
	require.Equal(t, []string{
		`web.yaml:10: unknown field "spec.containers[0].imagePolicy", it is ignored`,
		"web.yaml:12: spec.containers[0].image is written more than once, the last value counts",
	}, got)
}

func TestFieldNamesAreCaseSensitive(t *testing.T) {
	m, err := manifest.Decode("web.yaml", []byte(strings.Replace(web, "    image:", "    Image: other\n    image:", 1)))
	require.NoError(t, err)
	require.Len(t, m.Warnings, 1)
	require.Equal(t, "registry.example/app:1", m.Pod.Spec.Containers[0].Image)
}

func TestErrorNamesTheFirstProblemsOnly(t *testing.T) {
	err := &manifest.Error{}
	for range 12 {
		err.Problems = append(err.Problems, manifest.Problem{File: "a", Message: "bad"})
	}
	require.Equal(t, 8, strings.Count(err.Error(), "bad"))
	require.Contains(t, err.Error(), "and 4 more")
}
