//go:build e2e

package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// A process that ignores SIGTERM has its grace and no more; afterwards nothing is left, which every test of this package
// checks at its end.
func TestGraceIsHonoured(t *testing.T) {
	sawOn(t, node, "grace period of a removed manifest")
	a := startAgent(t, node, "deaf.yaml", podOf("deaf", `
terminationGracePeriodSeconds: 4
containers:
- {name: deaf, image: IMAGE, args: [sleep, -ignore-term]}
- {name: polite, image: IMAGE, args: [sleep]}
`))
	p := a.untilPod("deaf", "is ready", isReady)
	begin := time.Now()
	a.remove("deaf.yaml")
	ended := a.untilPod("deaf", "has a container that was killed", func(p *v1.Pod) bool { return status(p, "deaf").State.Terminated != nil })
	deaf, polite := status(ended, "deaf").State.Terminated, status(ended, "polite").State.Terminated
	require.Equal(t, int32(137), deaf.ExitCode)
	require.GreaterOrEqual(t, deaf.FinishedAt.Time.Add(time.Second).Sub(begin), 4*time.Second, "killed before its time")
	require.NotNil(t, polite)
	require.Zero(t, polite.ExitCode)
	require.Less(t, polite.FinishedAt.Sub(deaf.FinishedAt.Time), -2*time.Second, "waited for the other")
	a.untilGone()
	require.GreaterOrEqual(t, time.Since(begin), 4*time.Second)
	require.NoDirExists(t, filepath.Join(a.root, "pods", string(p.UID)))
	require.Empty(t, a.leftovers())
}

// An edited manifest is a new pod. It starts when the old one has ended.
func TestEditReplacesThePod(t *testing.T) {
	sawOn(t, node, "edit of a manifest: the old pod has its grace, then the new one starts")
	a := startAgent(t, node, "web.yaml", podOf("web", `
terminationGracePeriodSeconds: 3
containers: [{name: main, image: IMAGE, args: [sleep, -ignore-term]}]
`))
	old := a.untilPod("web", "is ready", isReady)
	before := containersOf(a.containers(), string(old.UID), "main")
	require.Len(t, before, 1)
	a.write("web.yaml", podOf("web", `containers: [{name: main, image: IMAGE, args: [log, -every, 1h, edited]}]`))
	var was inspected
	a.until("the new pod is ready", func() error {
		if got, err := a.inspect(before[0].ID); err == nil {
			was = got // it is removed in the end
		}
		pods, err := a.list()
		if err != nil {
			return err
		}
		if p := pods["web"]; p == nil || p.UID == old.UID || !isReady(p) {
			return os.ErrNotExist
		}
		return nil
	})
	p := a.untilPod("web", "is ready", func(p *v1.Pod) bool { return p.UID != old.UID && isReady(p) })
	a.until("the new process has spoken", func() error { return missing(a.output(p, "main"), "1 edited\n") })
	require.Equal(t, containerExited, was.State)
	require.Equal(t, int32(137), was.ExitCode, "the old one had its grace")
	sandboxes := a.sandboxes()
	require.Len(t, sandboxes, 1, "nothing of the old pod is left")
	require.Equal(t, string(p.UID), sandboxes[0].Metadata.UID)
	started, err := a.inspect(strings.TrimPrefix(status(p, "main").ContainerID, "containerd://"))
	require.NoError(t, err)
	require.False(t, started.StartedAt.Before(was.FinishedAt), "%s, before the old one ended at %s", started.StartedAt, was.FinishedAt)
}

// The same manifest, taken away and put back while its pod is ending, runs again: under its own UID or a fixed one.
func TestRemovedManifestReturns(t *testing.T) {
	sawOn(t, node, "a manifest that is removed and returns while its pod is ending")
	own := podOf("own", "terminationGracePeriodSeconds: 3\ncontainers: [{name: main, image: IMAGE, args: [sleep, -ignore-term]}]")
	fixed := strings.Replace(strings.ReplaceAll(own, "own", "fixed"), "metadata:\n", "metadata:\n  uid: 6f1d1a5e-0d5c-4c53-9f5e-0d2f5b8b7a11\n", 1)
	a := startAgent(t, node, "own.yaml", own, "fixed.yaml", fixed)
	before := map[string]*v1.Pod{}
	for _, name := range []string{"own", "fixed"} {
		before[name] = a.untilPod(name, "is ready", isReady)
	}
	require.Equal(t, "6f1d1a5e-0d5c-4c53-9f5e-0d2f5b8b7a11", string(before["fixed"].UID))
	a.remove("own.yaml")
	a.remove("fixed.yaml")
	for name := range before {
		a.untilPod(name, "is ending", func(p *v1.Pod) bool { return p.DeletionTimestamp != nil })
	}
	a.write("own.yaml", own)
	a.write("fixed.yaml", fixed)
	for name, old := range before {
		p := a.untilPod(name, "runs again", func(p *v1.Pod) bool {
			return isReady(p) && status(p, "main").ContainerID != status(old, "main").ContainerID
		})
		require.Equal(t, old.UID, p.UID)
		require.Nil(t, p.DeletionTimestamp)
		require.Zero(t, status(p, "main").RestartCount, "a new life")
		require.Len(t, containersOf(a.containers(), string(p.UID), "main"), 1)
	}
	a.agree()
}

// An edit of a manifest with a fixed UID is an update: only another image restarts a container, in the same sandbox.
func TestEditUnderAFixedUID(t *testing.T) {
	sawOn(t, node, "edit under a fixed UID")
	manifest := func(image, text string) string {
		m := podOf("fixed", "containers: [{name: main, image: "+image+", args: [log, -every, 1h, "+text+"]}]")
		return strings.Replace(m, "metadata:\n", "metadata:\n  uid: 6f1d1a5e-0d5c-4c53-9f5e-0d2f5b8b7a12\n", 1)
	}
	a := startAgent(t, node, "fixed.yaml", manifest("IMAGE", "first"))
	old := a.untilPod("fixed", "is ready", isReady)
	sandboxes := a.sandboxes()

	a.write("fixed.yaml", manifest("IMAGE", "second"))
	p := a.untilPod("fixed", "has the edited spec", func(p *v1.Pod) bool { return slices.Contains(p.Spec.Containers[0].Args, "second") })
	require.Equal(t, old.Status.ContainerStatuses, p.Status.ContainerStatuses)

	a.write("fixed.yaml", manifest(status(p, "main").ImageID, "third"))
	p = a.untilPod("fixed", "runs the other image", func(p *v1.Pod) bool { return isReady(p) && status(p, "main").RestartCount == 1 })
	require.Equal(t, old.UID, p.UID)
	a.until("the new process has spoken", func() error { return missing(a.output(p, "main"), "1 third\n") })
	require.Equal(t, sandboxes, a.sandboxes())
	a.agree()
}
