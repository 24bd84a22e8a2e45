package manifest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/manifest"
)

func origin() manifest.Origin {
	return manifest.Origin{
		Source: manifest.SourceFile, Location: "/etc/kubernetes/manifests/web.yaml", NodeName: "Node-1",
		Seen: time.Date(2026, 2, 3, 4, 5, 6, 7000, time.UTC),
	}
}

func load(t *testing.T, data string, o manifest.Origin) *manifest.Static {
	t.Helper()
	s, err := manifest.Load("web.yaml", []byte(data), o)
	require.NoError(t, err)
	return s
}

func TestStaticPodIsNamedAsByAKubelet(t *testing.T) {
	pod := load(t, web, origin()).Pod
	require.Equal(t, "web-node-1", pod.Name)
	require.Equal(t, "default", pod.Namespace)
	require.Equal(t, "Node-1", pod.Spec.NodeName)
	require.Len(t, pod.UID, 32)
	require.Equal(t, map[string]string{
		"kubernetes.io/config.hash":   string(pod.UID),
		"kubernetes.io/config.source": "file",
		"kubernetes.io/config.seen":   "2026-02-03T04:05:06.000007000Z",
	}, pod.Annotations)
	require.Equal(t, []v1.Toleration{{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}}, pod.Spec.Tolerations)
	require.Equal(t, v1.PodStatus{Phase: v1.PodPending}, pod.Status)
}

func TestOnlyFilePodsTolerateEverything(t *testing.T) {
	o := origin()
	o.Source = manifest.SourceHTTP
	require.Empty(t, load(t, web, o).Pod.Spec.Tolerations)

	own := web + "  tolerations:\n  - operator: Exists\n    effect: NoExecute\n    tolerationSeconds: 5\n"
	require.Equal(t, []v1.Toleration{{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute}},
		load(t, own, origin()).Pod.Spec.Tolerations, "one that matches is replaced")
}

func TestServerFieldsAreDropped(t *testing.T) {
	pod := load(t, strings.Replace(web, "  name: web\n",
		"  name: web\n  resourceVersion: \"7\"\n  generation: 3\n  deletionTimestamp: 2026-01-01T00:00:00Z\n", 1)+"status: {phase: Running}\n", origin()).Pod
	require.Empty(t, pod.ResourceVersion)
	require.Zero(t, pod.Generation)
	require.Nil(t, pod.DeletionTimestamp)
	require.Equal(t, v1.PodPending, pod.Status.Phase)
}

func TestUIDIgnoresSpelling(t *testing.T) {
	want := load(t, web, origin())
	spellings := map[string]string{
		"other key order": `kind: Pod
spec: {containers: [{image: "registry.example/app:1", ports: [{containerPort: 80}], name: app}]}
metadata: {labels: {app: web}, name: web}
apiVersion: v1`,
		"json":        `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"registry.example/app:1","ports":[{"containerPort":80}]}]}}`,
		"tabs":        "{\n\t\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"web\",\"labels\":{\"app\":\"web\"}},\"spec\":{\"containers\":[{\"name\":\"app\",\"image\":\"registry.example/app:1\",\"ports\":[{\"containerPort\":80}]}]}}",
		"comments":    "# my pod\n" + strings.ReplaceAll(web, "spec:", "spec: # here"),
		"null fields": strings.Replace(web, "  name: web\n", "  name: web\n  creationTimestamp: null\n", 1),
	}
	for name, data := range spellings {
		t.Run(name, func(t *testing.T) {
			got := load(t, data, origin())
			require.Equal(t, want.Pod.UID, got.Pod.UID)
			require.Equal(t, want.Revision, got.Revision)
		})
	}
}

func TestUIDChangesWithContentNodeAndPlace(t *testing.T) {
	seen := map[string]string{}
	add := func(why, data string, change func(*manifest.Origin)) {
		o := origin()
		change(&o)
		uid := string(load(t, data, o).Pod.UID)
		require.Empty(t, seen[uid], "%s has the UID of %s", why, seen[uid])
		seen[uid] = why
	}
	add("base", web, func(*manifest.Origin) {})
	add("content", web+"  hostPID: true\n", func(*manifest.Origin) {})
	add("unknown field", web+"  newField: true\n", func(*manifest.Origin) {})
	add("node", web, func(o *manifest.Origin) { o.NodeName = "node-2" })
	add("path", web, func(o *manifest.Origin) { o.Location = "/other" })
	add("source", web, func(o *manifest.Origin) { o.Source = manifest.SourceHTTP })
}

// The recipe is a promise to running pods (BC-10): an upgrade of flowlet must
// not change a UID. If this fails, a running node would restart every static pod.
func TestUIDRecipeIsKept(t *testing.T) {
	require.Equal(t, 1, manifest.UIDRecipe)
	require.Equal(t, uidOfWeb, string(load(t, web, origin()).Pod.UID))
}

func TestGivenUIDIsKept(t *testing.T) {
	withUID := strings.Replace(web, "  name: web\n", "  name: web\n  uid: u-1\n", 1)
	a := load(t, withUID, origin())
	b := load(t, withUID+"  hostPID: true\n", origin())
	require.Equal(t, "u-1", string(a.Pod.UID))
	require.Equal(t, "u-1", a.Pod.Annotations[manifest.AnnotationHash])
	require.Equal(t, a.Pod.UID, b.Pod.UID)
	require.NotEqual(t, a.Revision, b.Revision)
}

func TestLoadNamesFileLineAndField(t *testing.T) {
	cases := map[string]struct{ data, want string }{
		"name before it is rewritten": {strings.Replace(web, "name: web", "name: Web", 1), `web.yaml:4: metadata.name: Invalid value: "Web"`},
		"name too long with the node": {strings.Replace(web, "name: web", "name: "+strings.Repeat("a", 250), 1), "with the node name after it"},
		"missing mount":               {web + "    volumeMounts:\n    - name: data\n      mountPath: /data\n", `web.yaml:14: spec.containers[0].volumeMounts[0].name: Not found: "data"`},
		"api reference":               {web + "  volumes:\n  - name: s\n    secret:\n      secretName: s\n", "web.yaml:15: spec.volumes[0].secret: Forbidden: static pods may not reference secrets (via secret volumes)"},
		"uid that climbs":             {strings.Replace(web, "  name: web\n", "  name: web\n  uid: ../x\n", 1), "web.yaml:5: metadata.uid"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := manifest.Load("web.yaml", []byte(c.data), origin())
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestContainerHashIsOfNameAndImage(t *testing.T) {
	a := &v1.Container{Name: "app", Image: "registry.example/app:1"}
	b := a.DeepCopy()
	b.Args = []string{"--other"}
	require.Equal(t, manifest.ContainerHash(a), manifest.ContainerHash(b))
	b.Image = "registry.example/app:2"
	require.NotEqual(t, manifest.ContainerHash(a), manifest.ContainerHash(b))
	require.Regexp(t, "^[0-9a-f]{1,8}$", manifest.ContainerHash(a))
}

// uidOfWeb is what recipe 1 gives.
const uidOfWeb = "54a3e0568a2929752997c0c7807f79ab"
