//go:build e2e

package e2e_test

import (
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/test/devnode/images/inside"
)

// files are volumes.
func files() []view {
	return []view{inMemory(), boundedByPod(), about(), parts(), outOfVolume(), kinds(), readOnly(), readOnlyBelow(), propagation()}
}

func inMemory() view {
	return view{name: "memory", shows: "emptyDir on disk and in memory, with a size; read-only mounts", spec: `
containers:
- name: main
  image: IMAGE
  args: [report, /fast, /slow, /readonly]
  volumeMounts: [{name: fast, mountPath: /fast}, {name: slow, mountPath: /slow}, {name: fast, mountPath: /readonly, readOnly: true}]
- {name: fills, image: IMAGE, args: [fill, -bytes, "2000000", /full/x], volumeMounts: [{name: full, mountPath: /full}]}
volumes:
- {name: fast, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
- {name: full, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
- {name: slow, emptyDir: {}}
`, check: func(s *seen) {
		r := s.report("main")
		fast, readonly := r.Mount("/fast"), r.Mount("/readonly")
		require.Equal(s, "tmpfs", fast.Type)
		require.Contains(s, fast.Options, "rw")
		require.Contains(s, fast.Super, "size=1024k")
		require.Equal(s, "tmpfs", readonly.Type)
		require.Contains(s, readonly.Options, "ro")
		require.False(s, r.Paths["/readonly"].Writable)
		for path, mode := range map[string]string{"/fast": "dtrwxrwxrwx", "/slow": "drwxrwxrwx"} {
			require.Equal(s, mode, r.Paths[path].Mode, path)
			require.True(s, r.Paths[path].Writable, path)
			require.Empty(s, r.Mount(path).Propagation, path)
		}
		require.NotEqual(s, "tmpfs", r.Mount("/slow").Source)
		require.Equal(s, int32(1), s.terminated("fills").ExitCode)
		require.Contains(s, s.output(s.pod, "fills"), "no space left on device")
	}}
}

func boundedByPod() view {
	return view{name: "bounded", shows: "emptyDir in memory is bounded by the pod's memory limit", spec: `
containers:
- {name: main, image: IMAGE, args: [report], resources: {limits: {memory: 48Mi}}, volumeMounts: [{name: fast, mountPath: /fast}]}
volumes: [{name: fast, emptyDir: {medium: Memory}}]
`, check: func(s *seen) { require.Contains(s, s.report("main").Mount("/fast").Super, "size=49152k") }}
}

func about() view {
	return view{name: "info", shows: "downwardAPI and projected volumes, their modes and their links", spec: `
securityContext: {fsGroup: 4242}
containers:
- name: main
  image: IMAGE
  args: [report, /info, /info/labels, /info/deep/uid, /info/memory, /all/name, /all/app, /all]
  resources: {limits: {memory: 32Mi}}
  volumeMounts: [{name: info, mountPath: /info}, {name: all, mountPath: /all}]
- {name: writes, image: IMAGE, args: [write, /info/x, text], volumeMounts: [{name: info, mountPath: /info}]}
volumes:
- name: info
  downwardAPI:
    defaultMode: 0400
    items:
    - {path: labels, fieldRef: {fieldPath: metadata.labels}}
    - {path: deep/uid, fieldRef: {fieldPath: metadata.uid}}
    - {path: memory, mode: 0644, resourceFieldRef: {containerName: main, resource: limits.memory, divisor: 1Mi}}
- name: all
  projected:
    sources:
    - {downwardAPI: {items: [{path: name, mode: 0400, fieldRef: {fieldPath: metadata.name}}]}}
    - {downwardAPI: {items: [{path: app, fieldRef: {fieldPath: "metadata.labels['app']"}}]}}
`, check: func(s *seen) {
		r := s.report("main")
		for path, want := range map[string]struct{ text, mode string }{
			"/info/labels":   {"app=\"info\"", "-r--r-----"}, // the group may read
			"/info/deep/uid": {string(s.pod.UID), "-r--r-----"},
			"/info/memory":   {"32", "-rw-r--r--"},
			"/all/name":      {s.pod.Name, "-r--r-----"},
			"/all/app":       {"info", "-rw-r--r--"},
		} {
			file := r.Paths[path]
			require.Equal(s, want.text, strings.TrimSuffix(file.Text, "\n"), path)
			require.Equal(s, want.mode, file.Mode, path)
			require.Equal(s, uint32(4242), file.GID, path)
			require.False(s, file.Writable, path)
		}
		require.Equal(s, "..data/labels", r.Paths["/info/labels"].Link)
		require.ElementsMatch(s, []string{"..data", "deep", "labels", "memory"}, without(r.Paths["/info"].Names, "..2"))
		require.Equal(s, "tmpfs", r.Mount("/info").Type)
		require.Contains(s, r.Mount("/info").Options, "ro")
		require.NotZero(s, s.terminated("writes").ExitCode, "nobody but the agent writes there")
	}}
}

// without are the names that do not begin so.
func without(names []string, prefix string) (out []string) {
	for _, n := range names {
		if !strings.HasPrefix(n, prefix) {
			out = append(out, n)
		}
	}
	return out
}

// parts of volumes are made where they are missing, named by variables, files, and shared between containers.
func parts() view {
	return view{name: "parts", shows: "`subPath` and `subPathExpr`: made, shared, of files", spec: `
securityContext: {runAsUser: 1000}
initContainers:
- {name: first, image: IMAGE, args: [write, /w/x, shared], volumeMounts: [{name: v, mountPath: /w, subPath: new/dir}]}
containers:
- name: main
  image: IMAGE
  args: [report, /all/new/dir/x, /file, /w]
  volumeMounts: [{name: v, mountPath: /all}, {name: host, mountPath: /file, subPath: a/file, readOnly: true}, {name: v, mountPath: /w, subPath: new}]
- name: named
  image: IMAGE
  args: [write, /m/x, text]
  env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
  volumeMounts: [{name: m, mountPath: /m, subPathExpr: $(POD)/logs}]
- {name: sees, image: IMAGE, args: [report, /m/parts-e2e/logs], volumeMounts: [{name: m, mountPath: /m}]}
volumes: [{name: v, emptyDir: {}}, {name: m, emptyDir: {medium: Memory}}, {name: host, hostPath: {path: DIR}}]
`, check: func(s *seen) {
		require.Equal(s, v1.PodSucceeded, s.pod.Status.Phase, outline(s.pod))
		r := s.report("main")
		require.Equal(s, "shared\n", r.Paths["/all/new/dir/x"].Text)
		require.Equal(s, "one file\n", r.Paths["/file"].Text)
		require.False(s, r.Paths["/file"].Writable)
		require.Equal(s, []string{"dir"}, r.Paths["/w"].Names)
		require.Equal(s, "drwxrwxrwx", r.Paths["/w"].Mode, "that of the volume")
		require.Equal(s, "dtrwxrwxrwx", s.report("sees").Paths["/m/parts-e2e/logs"].Mode)
	}}
}

func outOfVolume() view {
	return view{name: "out", shows: "`subPath` that leads out of its volume through a link: refused", until: waits("main", "CreateContainerConfigError"), spec: `
containers: [{name: main, image: IMAGE, args: [sleep], volumeMounts: [{name: host, mountPath: /m, subPath: etc}]}]
volumes: [{name: host, hostPath: {path: DIR}}]
`, check: func(s *seen) { require.Contains(s, s.waiting("main").Message, "leads out of the volume") }}
}

func kinds() view {
	return view{name: "kinds", shows: "hostPath and its types", spec: `
containers:
- name: main
  image: IMAGE
  args: [report, /file, /new, /made, /null, /socket, /any]
  volumeMounts:
  - {name: file, mountPath: /file}
  - {name: new, mountPath: /new}
  - {name: made, mountPath: /made}
  - {name: "null", mountPath: /null}
  - {name: socket, mountPath: /socket}
  - {name: any, mountPath: /any}
- {name: writes, image: IMAGE, args: [write, /new/x, to the host], volumeMounts: [{name: new, mountPath: /new}]}
volumes:
- {name: file, hostPath: {path: DIR/a/file, type: File}}
- {name: new, hostPath: {path: DIR/new/deep, type: DirectoryOrCreate}}
- {name: made, hostPath: {path: DIR/made, type: FileOrCreate}}
- {name: "null", hostPath: {path: /dev/null, type: CharDevice}}
- {name: socket, hostPath: {path: SOCKET, type: Socket}}
- {name: any, hostPath: {path: DIR/fifo}}
`, check: func(s *seen) {
		paths := s.report("main").Paths
		require.Equal(s, "one file\n", paths["/file"].Text)
		for path, mode := range map[string]string{"/new": "drwxr-xr-x", "/made": "-rw-r--r--", "/null": "Dcrw-rw-rw-", "/any": "prw-------"} {
			require.Equal(s, mode, paths[path].Mode, path)
		}
		require.True(s, strings.HasPrefix(paths["/socket"].Mode, "S"), paths["/socket"].Mode)
		require.Equal(s, "to the host\n", s.ownFile(filepath.Join(s.host, "new/deep/x")))
	}}
}

func readOnly() view {
	return view{name: "readonly", shows: "read-only host paths, and what is mounted below them", spec: `
containers:
- name: main
  image: IMAGE
  args: [report, /plain, /plain/deep, /ifpossible]
  volumeMounts:
  - {name: below, mountPath: /plain, readOnly: true}
  - {name: below, mountPath: /ifpossible, readOnly: true, recursiveReadOnly: IfPossible}
volumes: [{name: below, hostPath: {path: DIR/below}}]
`, check: func(s *seen) {
		r := s.report("main")
		require.Contains(s, r.Mount("/plain").Options, "ro")
		require.Contains(s, r.Mount("/plain/deep").Options, "rw", "read-only is the mount alone")
		require.Contains(s, r.Mount("/ifpossible").Options, "ro")
		recursive := "rw"
		if reported(s.pod, "/ifpossible") == v1.RecursiveReadOnlyEnabled {
			recursive = "ro"
		}
		require.Contains(s, r.Mount("/ifpossible/deep").Options, recursive, "as the status says")
		require.Equal(s, v1.RecursiveReadOnlyDisabled, reported(s.pod, "/plain"))
	}}
}

// reported is what the pod's status says about a mount of the container main.
func reported(p *v1.Pod, path string) v1.RecursiveReadOnlyMode {
	for _, m := range status(p, "main").VolumeMounts {
		if m.MountPath == path && m.RecursiveReadOnly != nil {
			return *m.RecursiveReadOnly
		}
	}
	return ""
}

func readOnlyBelow() view {
	return view{name: "recursive", shows: "recursiveReadOnly", not: []string{old}, spec: `
containers: [{name: main, image: IMAGE, args: [report], volumeMounts: [{name: below, mountPath: /all, readOnly: true, recursiveReadOnly: Enabled}]}]
volumes: [{name: below, hostPath: {path: DIR/below}}]
`, check: func(s *seen) {
		r := s.report("main")
		require.Contains(s, r.Mount("/all").Options, "ro")
		require.Contains(s, r.Mount("/all/deep").Options, "ro")
		require.Equal(s, v1.RecursiveReadOnlyEnabled, reported(s.pod, "/all"))
	}}
}

func propagation() view {
	return view{name: "propagation", shows: "mount propagation", spec: `
containers:
- name: main
  image: IMAGE
  args: [report]
  volumeMounts: [{name: v, mountPath: /none}, {name: v, mountPath: /in, mountPropagation: HostToContainer}]
- name: both
  image: IMAGE
  args: [report]
  securityContext: {privileged: true}
  volumeMounts: [{name: v, mountPath: /both, mountPropagation: Bidirectional}]
volumes: [{name: v, hostPath: {path: DIR/mounted}}]
`, check: func(s *seen) {
		r := s.report("main")
		kinds := func(m inside.Mount) string {
			var out []string
			for _, tag := range m.Propagation {
				kind, _, _ := strings.Cut(tag, ":")
				out = append(out, kind)
			}
			return strings.Join(out, " ")
		}
		require.Empty(s, kinds(r.Mount("/none")))
		require.Equal(s, "master", kinds(r.Mount("/in")))
		require.Equal(s, "shared", kinds(s.report("both").Mount("/both")))
	}}
}
