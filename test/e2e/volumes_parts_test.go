//go:build e2e

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// A pod reads about itself in files, alone and merged from several sources.
func TestFilesAboutThePod(t *testing.T) {
	a := startAgent(t, node, "info.yaml", podOf("info", `
restartPolicy: Never
securityContext: {fsGroup: 4242}
containers:
- name: main
  image: IMAGE
  args: [cat, /info/labels, /info/deep/uid, /info/memory, /all/name]
  resources: {limits: {memory: 32Mi}}
  volumeMounts: [{name: info, mountPath: /info}, {name: all, mountPath: /all}]
- {name: writes, image: IMAGE, args: [write, /info/x, text], volumeMounts: [{name: info, mountPath: /info}]}
volumes:
- name: info
  downwardAPI:
    items:
    - {path: labels, fieldRef: {fieldPath: metadata.labels}}
    - {path: deep/uid, fieldRef: {fieldPath: metadata.uid}}
    - {path: memory, resourceFieldRef: {containerName: main, resource: limits.memory, divisor: 1Mi}}
- name: all
  projected: {sources: [{downwardAPI: {items: [{path: name, mode: 0400, fieldRef: {fieldPath: metadata.name}}]}}]}
`))
	p := a.untilPod("info", "has ended", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodFailed })
	require.Equal(t, "app=\"info\""+string(p.UID)+"32"+p.Name, strings.ReplaceAll(a.output(p, "main"), "\n", ""))
	require.NotZero(t, status(p, "writes").State.Terminated.ExitCode, "nobody but the agent writes there")
}

// Parts of volumes: made where they are missing, named by variables, files, and shared between containers. One that leads
// out of its volume is refused. What is left on the node at the end, tearDown would tell.
func TestPartsOfVolumes(t *testing.T) {
	a := newAgent(t, node)
	dir := filepath.Join(a.dir, "host")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a/file"), []byte("one file\n"), 0o644))
	require.NoError(t, os.Symlink("/etc", filepath.Join(dir, "etc")))
	a.write("parts.yaml", podOf("parts", strings.ReplaceAll(`
restartPolicy: Never
securityContext: {runAsUser: 1000}
initContainers:
- {name: first, image: IMAGE, args: [write, /w/x, shared], volumeMounts: [{name: v, mountPath: /w, subPath: new/dir}]}
containers:
- name: main
  image: IMAGE
  args: [cat, /all/new/dir/x, /file]
  volumeMounts: [{name: v, mountPath: /all}, {name: host, mountPath: /file, subPath: a/file, readOnly: true}]
- name: named
  image: IMAGE
  args: [write, /m/x, text]
  env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
  volumeMounts: [{name: m, mountPath: /m, subPathExpr: $(POD)/logs}]
volumes: [{name: v, emptyDir: {}}, {name: m, emptyDir: {medium: Memory}}, {name: host, hostPath: {path: DIR}}]
`, "DIR", dir)))
	a.write("out.yaml", podOf("out", strings.ReplaceAll(`
containers: [{name: main, image: IMAGE, args: [sleep], volumeMounts: [{name: host, mountPath: /m, subPath: etc}]}]
volumes: [{name: host, hostPath: {path: DIR}}]
`, "DIR", dir)))
	a.start()
	p := a.untilPod("parts", "has succeeded", hasSucceeded)
	require.Equal(t, "shared\none file\n", a.output(p, "main"))
	p = a.untilPod("out", "is refused", waits("main", "CreateContainerConfigError"))
	require.Contains(t, status(p, "main").State.Waiting.Message, "leads out of the volume")
}
