package container_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/container"
)

// ended is the status of a container that failed, with that policy and files.
func ended(policy, file, log string) *runtimeapi.ContainerStatus {
	return &runtimeapi.ContainerStatus{
		State: runtimeapi.ContainerState_CONTAINER_EXITED, ExitCode: 1, Reason: "Error", LogPath: log,
		Annotations: map[string]string{
			"io.kubernetes.container.terminationMessagePath":   "/dev/termination-log",
			"io.kubernetes.container.terminationMessagePolicy": policy,
		},
		Mounts: []*runtimeapi.Mount{
			{ContainerPath: "/etc/hosts", HostPath: "/etc/hostname"},
			{ContainerPath: "/dev/termination-log", HostPath: file},
		},
	}
}

func TestTerminationMessage(t *testing.T) {
	const file, fallback = "File", "FallbackToLogsOnError"
	dir := t.TempDir()
	words := write(t, filepath.Join(dir, "words"), "that was it")
	long := write(t, filepath.Join(dir, "long"), strings.Repeat("a", 5000)+strings.Repeat("b", 4096))
	empty := write(t, filepath.Join(dir, "empty"), "")
	log := write(t, filepath.Join(dir, "log"), "2026-01-01T00:00:00Z stdout F one\n2026-01-01T00:00:00Z stderr P two, \n2026-01-01T00:00:00Z stderr F in two\n")
	many := write(t, filepath.Join(dir, "many"), lines(100, "2026-01-01T00:00:00Z stdout F old")+lines(80, "2026-01-01T00:00:00Z stdout F new"))
	wide := write(t, filepath.Join(dir, "wide"), lines(10, "2026-01-01T00:00:00Z stdout F "+strings.Repeat("w", 999)))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(words, link))
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))

	for name, tc := range map[string]struct {
		status *runtimeapi.ContainerStatus
		want   string
	}{
		"written":              {ended(file, words, log), "that was it"},
		"the end counts":       {ended(file, long, log), strings.Repeat("b", 4096)},
		"nothing":              {ended(file, empty, log), ""},
		"no file":              {ended(file, filepath.Join(dir, "none"), log), ""},
		"fallback, not needed": {ended(fallback, words, log), "that was it"},
		"fallback":             {ended(fallback, empty, log), "one\ntwo, in two\n"},
		"fallback, 80 lines":   {ended(fallback, empty, many), lines(80, "new")},
		"fallback, 2048 bytes": {ended(fallback, empty, wide), strings.Repeat("w", 47) + "\n" + lines(2, strings.Repeat("w", 999))},
		"fallback, no log": {
			ended(fallback, empty, filepath.Join(dir, "none")),
			"Error reading termination message from logs: open " + filepath.Join(dir, "none") + ": no such file or directory",
		},
		"a link is not followed":   {ended(file, link, log), "Error on reading termination log " + link + ": open " + link + ": too many levels of symbolic links"},
		"a pipe is not waited for": {ended(file, fifo, log), "Error on reading termination log " + fifo + ": not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, container.TerminationMessage(tc.status))
		})
	}

	good := ended(fallback, empty, log)
	good.ExitCode = 0
	require.Empty(t, container.TerminationMessage(good), "it did not fail")
	never := ended(fallback, empty, log)
	never.Reason = "ContainerCannotRun"
	require.Empty(t, container.TerminationMessage(never), "it has no log")
	unmounted := ended(file, words, log)
	unmounted.Mounts = nil
	require.Empty(t, container.TerminationMessage(unmounted))
}

func TestFinish(t *testing.T) {
	c := newRig(nil)
	words := write(t, filepath.Join(t.TempDir(), "words"), "bye")
	finish := func(st *runtimeapi.ContainerStatus) string {
		ct := crifact.ContainerStatus(st)
		c.Finish(&ct, st)
		return ct.Exit.Message
	}
	require.Equal(t, "bye", finish(ended("File", words, "")))
	both := ended("File", words, "")
	both.Message = "OOM"
	require.Equal(t, "OOM: bye", finish(both))
	both.Mounts = nil
	require.Equal(t, "OOM", finish(both))
	running := ended("File", words, "")
	running.State = runtimeapi.ContainerState_CONTAINER_RUNNING
	require.Empty(t, finish(running))
}

func TestStopLearnsTheLastWords(t *testing.T) {
	r := newRig(nil)
	r.rt.status = ended("File", write(t, filepath.Join(t.TempDir(), "words"), "bye"), "")
	facts, err := r.Stop(t.Context(), start(nil).State, pod.Container{ID: "c1", Name: "app"}, 0, "")
	require.NoError(t, err)
	require.Equal(t, "bye", facts[0].(pod.Observed).Containers[0].Exit.Message)
}
