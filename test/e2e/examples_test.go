//go:build e2e

package e2e_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/test/devnode"
)

// example is a manifest of examples/pods.
func example(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(node.Tools.Repo, "examples", "pods", name+".yaml"))
	require.NoError(t, err)
	return string(b)
}

// startExamples is an agent with all example pods.
func startExamples(t *testing.T, n *devnode.Node) *agent {
	t.Helper()
	var manifests []string
	for _, name := range []string{"web", "shared", "crash", "job"} {
		manifests = append(manifests, name+".yaml", example(t, name))
	}
	return startAgent(t, n, manifests...)
}

// untilExamplesSettle waits until the example pods are where they are going.
func (a *agent) untilExamplesSettle() {
	a.t.Helper()
	a.untilPod("web", "is ready", isReady)
	a.untilPod("shared", "is ready", isReady)
	a.untilPod("job", "has succeeded", hasSucceeded)
	a.untilPod("crash", "is in a crash loop", waits("app", "CrashLoopBackOff"))
}

func TestExamplePods(t *testing.T) {
	testExamples(t, node)
}

// The distribution's containerd is an older line; 1.6 is without events and RuntimeConfig.
func TestExamplePodsOnOldContainerd(t *testing.T) {
	testExamples(t, startOld(t))
}

func testExamples(t *testing.T, n *devnode.Node) {
	sawOn(t, n, "start and stop of the example pods: init container, sidecar, restart policies, crash loop, job, exec probes", "names, labels, annotations and states as `crictl` shows them", "pod network with the bridge of CNI; the pod IP is reachable from the node", "pulls from a registry over plain HTTP, anonymous", "restart of the agent: restarts no container", "teardown leaves nothing: sandboxes, containers, mounts, cgroups, directories, addresses")
	a := startExamples(t, n)
	a.untilExamplesSettle()
	a.agree()
	t.Run("a web server answers on the pod's address", a.webAnswers)
	t.Run("two containers share a directory", a.directoryIsShared)
	t.Run("a crash loop tells of its last run", a.crashLoopIsTold)
	t.Run("a job has run twice and its sandbox is stopped", a.jobIsOver)

	before := a.containers()
	a.stop()
	a.start()
	a.untilExamplesSettle()
	a.agree()
	t.Run("a restart of the agent restarts no container", func(t *testing.T) {
		pods, err := a.list()
		require.NoError(t, err)
		after := a.containers()
		for name, p := range pods {
			for _, s := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
				if name == "crash" {
					continue
				}
				was, is := containersOf(before, string(p.UID), s.Name), containersOf(after, string(p.UID), s.Name)
				require.Equal(t, was, is, "%s, %s", name, s.Name)
			}
		}
	})
}

func (a *agent) webAnswers(t *testing.T) {
	a = a.in(t)
	p := a.untilPod("web", "is ready", isReady)
	require.Equal(t, v1.PodRunning, p.Status.Phase)
	require.Contains(t, a.node.PodCIDR.String(), p.Status.PodIP[:strings.LastIndex(p.Status.PodIP, ".")])
	require.Contains(t, get(t, "http://"+p.Status.PodIP+":8080/"), "Hello from a pod that flowlet started")
	require.Contains(t, get(t, "http://"+p.Status.PodIP+":8080/time.txt"), "tick", "the sidecar runs beside")
	require.Equal(t, "Completed", status(p, "page").State.Terminated.Reason)
	require.Zero(t, status(p, "page").State.Terminated.ExitCode)
	require.NotNil(t, status(p, "clock").State.Running)
	require.Zero(t, status(p, "server").RestartCount)
}

// get is what a web server answers.
func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Get(url)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(b)
}

func (a *agent) directoryIsShared(t *testing.T) {
	a = a.in(t)
	p := a.untilPod("shared", "is ready", isReady)
	a.until("the reader has seen what the writer wrote", func() error {
		return missing(a.output(p, "reader"), "read: hello from the writer")
	})
}

func (a *agent) crashLoopIsTold(t *testing.T) {
	a = a.in(t)
	p := a.untilPod("crash", "is in a crash loop", waits("app", "CrashLoopBackOff"))
	require.Equal(t, v1.PodRunning, p.Status.Phase)
	s := status(p, "app")
	require.GreaterOrEqual(t, s.RestartCount, int32(1))
	require.Regexp(t, `^back-off \d+s restarting failed container=app pod=crash-e2e_default\(`+string(p.UID)+`\)$`, s.State.Waiting.Message)
	last := s.LastTerminationState.Terminated
	require.NotNil(t, last)
	require.Equal(t, int32(3), last.ExitCode)
	require.Equal(t, "Error", last.Reason)
	require.Equal(t, "the database is not there\n", last.Message)
	out, code := a.run("why", "crash")
	require.Equal(t, 3, code)
	require.Regexp(t, regexp.MustCompile(`back-off|crash loop`), out)
}

func (a *agent) jobIsOver(t *testing.T) {
	a = a.in(t)
	p := a.untilPod("job", "has succeeded", hasSucceeded)
	s := status(p, "worker")
	require.Equal(t, int32(1), s.RestartCount)
	require.Equal(t, "Completed", s.State.Terminated.Reason)
	a.until("the sandbox is stopped", func() error {
		for _, b := range a.sandboxes() {
			if b.Metadata.UID == string(p.UID) && b.State == sandboxReady {
				return os.ErrExist
			}
		}
		return nil
	})
}
