//go:build e2e

package e2e_test

import (
	"os"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// newer are fields that only newer runtimes or specs have.
func newer() []view {
	return []view{imageVolume(), stopSignal(), variablesFromFile()}
}

func imageVolume() view {
	return view{name: "imagevolume", shows: "image volumes, with `subPath`", not: []string{old}, spec: `
containers:
- name: main
  image: IMAGE
  args: [report, /other/etc/group, /etc2, /other]
  volumeMounts: [{name: v, mountPath: /other}, {name: v, mountPath: /etc2, subPath: etc}]
volumes: [{name: v, image: {reference: NAMED}}]
`, check: func(s *seen) {
		r := s.report("main")
		require.Contains(s, r.Paths["/other/etc/group"].Text, "extra:x:5000:nobody")
		require.ElementsMatch(s, []string{"group", "passwd"}, r.Paths["/etc2"].Names)
		require.False(s, r.Paths["/other"].Writable)
	}}
}

// stopSignal ends by a signal of its own, which is the first that it gets.
func stopSignal() view {
	return view{name: "stopsignal", shows: "stopSignal", not: []string{old}, until: isReady, spec: `
os: {name: linux}
terminationGracePeriodSeconds: 60
containers: [{name: main, image: IMAGE, args: [signals, -end, user defined signal 1], lifecycle: {stopSignal: SIGUSR1}}]
`, check: func(s *seen) {
		require.Equal(s, v1.SIGUSR1, *status(s.pod, "main").StopSignal)
		s.until("the process listens", func() error { return missing(s.output(s.pod, "main"), "listening\n") })
		require.NoError(s, os.Remove(s.manifests+"/stopsignal.yaml"))
		var heard string
		s.pod = s.untilPod("stopsignal", "has ended", func(p *v1.Pod) bool {
			if b, err := os.ReadFile(logOf(p, "main")); err == nil {
				heard = string(b)
			}
			return status(p, "main").State.Terminated != nil
		})
		require.Zero(s, s.terminated("main").ExitCode, heard)
		require.Contains(s, heard, "user defined signal 1")
		require.NotContains(s, heard, "terminated")
	}}
}

func variablesFromFile() view {
	return view{name: "envfile", shows: "environment from a file in a volume", spec: `
initContainers: [{name: first, image: IMAGE, args: [write, /v/env, "COLOUR='blue'"], volumeMounts: [{name: v, mountPath: /v}]}]
containers:
- name: main
  image: IMAGE
  args: [report]
  env:
  - {name: OWN, valueFrom: {fileKeyRef: {volumeName: v, path: env, key: COLOUR}}}
  - {name: NONE, valueFrom: {fileKeyRef: {volumeName: v, path: env, key: MISSING, optional: true}}}
volumes: [{name: v, emptyDir: {}}]
`, check: func(s *seen) {
		env := s.report("main").Env
		require.Equal(s, "blue", env["OWN"])
		require.NotContains(s, env, "NONE")
	}}
}
