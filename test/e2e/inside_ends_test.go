//go:build e2e

package e2e_test

import (
	"os"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// ends are how processes end.
func ends() []view { return []view{outOfMemory(), ending()} }

// containerd 1.6 hears of the kill after the container's end at times.
func outOfMemory() view {
	return view{name: "oom", shows: "OOMKilled", not: []string{old, crun}, spec: `
containers: [{name: main, image: IMAGE, args: [oom], resources: {limits: {memory: 24Mi}}}]
`, check: func(s *seen) {
		end := s.terminated("main")
		require.Equal(s, "OOMKilled", end.Reason)
		require.Equal(s, int32(137), end.ExitCode)
		require.Equal(s, v1.PodFailed, s.pod.Status.Phase)
	}}
}

// ending is a pod that is taken away: its signals come in their time, and what has ended stays as it was.
func ending() view {
	return view{name: "ending", shows: "SIGTERM, the grace period and SIGKILL as the process sees them; a first exit code stays", until: func(p *v1.Pod) bool {
		return status(p, "exits") != nil && status(p, "exits").State.Terminated != nil && isRunning(p, "listens") && isRunning(p, "obeys")
	}, spec: `
terminationGracePeriodSeconds: 4
containers:
- {name: exits, image: IMAGE, args: [exit, "5"]}
- {name: listens, image: IMAGE, args: [signals]}
- {name: obeys, image: IMAGE, args: [signals, -end, terminated]}
`, check: func(s *seen) {
		first := s.terminated("exits")
		s.until("the processes listen", func() error {
			return missing(s.output(s.pod, "listens")+s.output(s.pod, "obeys"), "listening\n"+s.output(s.pod, "obeys"))
		})
		begin := time.Now()
		require.NoError(s, os.Remove(s.manifests+"/ending.yaml"))
		var heard string
		s.pod = s.untilPod("ending", "is killed", func(p *v1.Pod) bool {
			if b, err := os.ReadFile(logOf(p, "listens")); err == nil {
				heard = string(b)
			}
			return status(p, "listens").State.Terminated != nil
		})
		require.Equal(s, first, s.terminated("exits"))
		obeys, listens := s.terminated("obeys"), s.terminated("listens")
		require.Zero(s, obeys.ExitCode)
		require.Equal(s, "Completed", obeys.Reason)
		require.Equal(s, int32(137), listens.ExitCode)
		require.Equal(s, "Error", listens.Reason)
		require.Equal(s, 1, strings.Count(heard, " terminated\n"), "one SIGTERM: %s", heard)
		for line := range strings.Lines(heard) {
			if text, is := strings.CutSuffix(strings.TrimSpace(line), " terminated"); is {
				at, err := time.Parse(time.RFC3339Nano, text[strings.LastIndex(text, " ")+1:])
				require.NoError(s, err)
				require.False(s, at.Before(begin.Add(-time.Second)))
				require.GreaterOrEqual(s, listens.FinishedAt.Time.Add(time.Second).Sub(at), 4*time.Second, "killed before its time")
			}
		}
		require.Less(s, obeys.FinishedAt.Sub(listens.FinishedAt.Time), -2*time.Second, "waited for the other")
	}}
}

func isRunning(p *v1.Pod, container string) bool {
	s := status(p, container)
	return s != nil && s.State.Running != nil
}

// refusals are containers that cannot run, with the kubelet's words. They cost the other pods nothing.
func refusals() []view {
	waitsFor := func(name, reason, spec, message string) view {
		return view{name: name, shows: "containers that cannot start: " + reason, until: waits("main", reason), spec: spec, check: func(s *seen) {
			require.Contains(s, s.waiting("main").Message, message)
			require.Equal(s, v1.PodPending, s.pod.Status.Phase)
			out, code := s.run("why", name)
			require.Equal(s, 3, code, out)
		}}
	}
	return []view{
		waitsFor("missing", "ImagePullBackOff", "containers: [{name: main, image: 'localhost:5000/missing:1'}]", "localhost:5000/missing:1"),
		waitsFor("never", "ErrImageNeverPull", "containers: [{name: main, image: 'localhost:5000/missing:2', imagePullPolicy: Never}]", "localhost:5000/missing:2"),
		waitsFor("upper", "InvalidImageName", "containers: [{name: main, image: 'localhost:5000/UPPER:1'}]", "UPPER"),
		waitsFor("root", "CreateContainerConfigError", "containers: [{name: main, image: IMAGE, args: [sleep], securityContext: {runAsNonRoot: true}}]",
			"container has runAsNonRoot and image will run as root"),
		waitsFor("unknown", "CreateContainerConfigError", "containers: [{name: main, image: NAMED, args: [sleep], securityContext: {runAsNonRoot: true}}]",
			"container has runAsNonRoot and image has non-numeric user (nobody), cannot verify user is non-root"),
		waitsFor("zero", "CreateContainerConfigError", "securityContext: {runAsNonRoot: true}\ncontainers: [{name: main, image: IMAGE, args: [sleep], securityContext: {runAsUser: 0}}]",
			"container's runAsUser breaks non-root policy"),
		waitsFor("expr", "CreateContainerConfigError", "containers: [{name: main, image: IMAGE, args: [sleep], volumeMounts: [{name: v, mountPath: /v, subPathExpr: $(NONE)/x}]}]\nvolumes: [{name: v, emptyDir: {}}]", "NONE"),
		waitsFor("noprofile", "CreateContainerError", "containers: [{name: main, image: IMAGE, args: [sleep], securityContext: {seccompProfile: {type: Localhost, localhostProfile: missing.json}}}]", "missing.json"),
		cannotRun("command", "command: [/bin/missing]", "/bin/missing", 128),
		cannotRun("directory", "command: [/tmp]", "", 128), // crun does not name it
	}
}

// cannotRun is a container that the runtime creates and cannot start.
func cannotRun(name, spec, message string, code int32) view {
	return view{name: name, shows: "containers that cannot start: StartError, exit code 128", spec: "containers: [{name: main, image: IMAGE, " + spec + "}]", check: func(s *seen) {
		end := s.terminated("main")
		require.Equal(s, "StartError", end.Reason)
		require.Equal(s, code, end.ExitCode)
		require.Contains(s, end.Message, message)
		require.Equal(s, v1.PodFailed, s.pod.Status.Phase)
	}}
}
