package scenarios_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/dag"
)

func (n *node) ephemeralStatus(name string) v1.ContainerStatus {
	n.Helper()
	v, ok := n.view(name)
	require.True(n, ok)
	require.Len(n, v.Status.EphemeralContainerStatuses, 1)
	return v.Status.EphemeralContainerStatuses[0]
}

func TestEphemeralContainerNeedsOnlyTheSandbox(t *testing.T) {
	s := setup{served: true, sim: crisim.Config{Images: map[string]crisim.Image{"app:1": {Present: true}, "slow:1": {Pull: time.Hour}}}}
	scenario(t, s, func(n *node) {
		debug := func(c *v1.Container) { c.TTY, c.Stdin, c.StdinOnce = true, true, true }
		n.apply(manifest("s", initContainer("i"), container("app", "slow:1"), ephemeral("debug", "", debug),
			does(`{"i":{"exit":{"after":"1h"}},"debug":[{"exit":{"after":"10s","code":3}}]}`)))
		n.untilRuns(3*time.Second, "s", "debug")
		require.NotNil(n, n.ephemeralStatus("s").State.Running)
		require.Equal(n, v1.PodPending, n.phase("s"), "it says nothing about the phase")
		c, _ := n.find("s", "debug")
		require.True(n, c.Config.GetTty() && c.Config.GetStdin() && c.Config.GetStdinOnce())

		n.pass(20 * time.Second)
		n.kill()
		n.start()
		n.pass(time.Minute)
		st := n.ephemeralStatus("s")
		require.EqualValues(n, 3, st.State.Terminated.ExitCode)
		require.Zero(n, st.RestartCount)
		require.Len(n, n.starts("s", "debug"), 1, "never again")
	})
}

func TestEphemeralContainerIsAddedToARunningPod(t *testing.T) {
	scenario(t, setup{served: true, sim: crisim.Config{Images: here1}}, func(n *node) {
		n.apply(manifest("s", container("app", "app:1")))
		n.untilRuns(3*time.Second, "s", "app")
		n.apply(manifest("s", container("app", "app:1"), ephemeral("debug", "app")))
		n.untilRuns(3*time.Second, "s", "app", "debug")
		require.Len(n, n.starts("s", "app"), 1)
		app, _ := n.find("s", "app")
		debug, _ := n.find("s", "debug")
		namespaces := debug.Config.GetLinux().GetSecurityContext().GetNamespaceOptions()
		require.Equal(n, runtimeapi.NamespaceMode_TARGET, namespaces.GetPid())
		require.Equal(n, app.Status.GetId(), namespaces.GetTargetId())

		require.NoError(n, n.sim.KillSandbox(n.sandbox("s")))
		n.untilRuns(10*time.Second, "s", "app")
		n.pass(time.Minute)
		require.Len(n, n.starts("s", "debug"), 1, "not in another sandbox either")
		require.NotNil(n, n.ephemeralStatus("s").State.Terminated)
	})
}

func TestEphemeralContainerWaitsForItsTarget(t *testing.T) {
	scenario(t, setup{served: true, sim: crisim.Config{Images: here1}}, func(n *node) {
		n.apply(manifest("s", initContainer("i"), container("app", "app:1"), ephemeral("debug", "app"), does(`{"i":{"exit":{"after":"5s"}}}`)))
		n.pass(3 * time.Second)
		v, _ := n.view("s")
		e := v.Memo[stage("ephemeral", "debug")]
		require.Equal(n, dag.Held, e.State)
		require.Equal(n, "its target, container app, does not run", e.Why)
		n.untilRuns(10*time.Second, "s", "app", "debug")
	})
}

func imageVolume(name, ref string) part {
	return func(p *v1.Pod) {
		source := &v1.ImageVolumeSource{Reference: ref, PullPolicy: v1.PullIfNotPresent}
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{Image: source}})
	}
}

func TestContainersWaitForTheImagesThatTheyMount(t *testing.T) {
	images := map[string]crisim.Image{"app:1": {Present: true}, "model:1": {Pull: 5 * time.Second}}
	scenario(t, setup{sim: crisim.Config{Images: images}}, func(n *node) {
		n.pass(2 * time.Second)
		n.write("s", manifest("s", imageVolume("model", "model:1"), imageVolume("unused", "other:1"),
			container("a", "app:1"), container("b", "app:1", mount("model"), func(c *v1.Container) { c.VolumeMounts[0].SubPath = "weights" })))
		n.untilRuns(2*time.Second, "s", "a")
		require.False(n, n.runs("s", "b"))
		n.untilRuns(6*time.Second, "s", "b")
		pull := n.only("", "PullImage")
		require.Equal(n, n.at(pull.End), n.starts("s", "b")[0], "and for nothing else")
		b, _ := n.find("s", "b")
		m := b.Config.GetMounts()[0]
		require.Equal(n, "model:1", m.GetImage().GetUserSpecifiedImage())
		require.Equal(n, "weights", m.GetImageSubPath())
		require.True(n, m.GetReadonly())
		require.Empty(n, m.GetHostPath())
	})
}

func TestImageVolumeThatCannotBeHad(t *testing.T) {
	for name, tt := range map[string]struct {
		sim    crisim.Config
		reason string
	}{
		"pull fails": {
			crisim.Config{Images: map[string]crisim.Image{"app:1": {Present: true}, "model:1": {Err: errors.New("no such image")}}}, "ErrImagePull",
		},
		"old runtime": {
			crisim.Containerd16(crisim.Config{Name: "containerd", Images: map[string]crisim.Image{"app:1": {Present: true}, "model:1": {}}}),
			"CreateContainerConfigError",
		},
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, setup{sim: tt.sim}, func(n *node) {
				n.write("s", manifest("s", imageVolume("model", "model:1"), container("a", "app:1"), container("b", "app:1", mount("model"))))
				n.untilRuns(3*time.Second, "s", "a")
				n.until(5*time.Second, "b cannot start", func() bool { return n.waiting("s", "b") == tt.reason })
			})
		})
	}
}
