package scenarios_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri/crisim"
)

// callGaps are the times from one call to the next of its kind.
func callGaps(calls []crisim.Call) []time.Duration {
	var out []time.Duration
	for i := 1; i < len(calls); i++ {
		out = append(out, calls[i].Start.Sub(calls[i-1].Start))
	}
	return out
}

func TestPullBackOffIsExact(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: map[string]crisim.Image{"app:1": {Err: errors.New("no such manifest")}}}}, func(n *node) {
		n.write("s", manifest("s"))
		n.pass(time.Second)
		require.Equal(n, "ErrImagePull", n.waiting("s", "web"))
		n.pass(30 * time.Minute)
		require.Equal(n, "ImagePullBackOff", n.waiting("s", "web"))
		require.Equal(n, v1.PodPending, n.phase("s"))
		require.Equal(n, seconds(10, 20, 40, 80, 160, 300, 300), callGaps(n.calls("", "PullImage"))[:7])
		require.Equal(n, 1, n.count("s", "RunPodSandbox"))
		require.NoError(n, n.sim.SetImage("app:1", crisim.Image{}))
		n.untilRuns(301*time.Second, "s", "web")
	})
}

// BC-42, as far as the node goes.
func TestImageThatMustNotBePulledIsLoadedLater(t *testing.T) {
	scenario(t, setup{}, func(n *node) {
		n.write("s", manifest("s", container("web", "app:1", pullPolicy(v1.PullNever))))
		n.pass(5 * time.Minute)
		require.Equal(n, "ErrImageNeverPull", n.waiting("s", "web"))
		require.NoError(n, n.sim.SetImage("app:1", crisim.Image{Present: true}))
		n.untilRuns(301*time.Second, "s", "web")
		require.Zero(n, n.count("", "PullImage"))
	})
}

func TestImageChangedUnderAFixedUIDRestartsThatContainerOnly(t *testing.T) {
	scenario(t, setup{}, func(n *node) {
		with := func(image string) string {
			return manifest("s", uid("u-1"), container("a", image), container("b", "app:1"))
		}
		n.write("s", with("app:1"))
		n.untilRuns(3*time.Second, "s", "a", "b")
		b, _ := n.find("s", "b")
		n.write("s", with("app:2"))
		n.until(5*time.Second, "the new image runs", func() bool { return len(n.starts("s", "a")) == 2 })
		n.pass(time.Minute)
		now, _ := n.find("s", "b")
		require.Equal(n, b.Status.GetId(), now.Status.GetId())
		require.True(n, n.runs("s", "a", "b"))
		a, _ := n.find("s", "a")
		require.Equal(n, "app:2", a.Config.GetImage().GetUserSpecifiedImage())
		require.Equal(n, uint32(1), a.Config.GetMetadata().GetAttempt())
		n.only("s", "StopContainer")
		n.only("s", "RunPodSandbox")
	})
}

func TestEditedManifestWaitsForTheOldPodButItsPullDoesNot(t *testing.T) {
	images := map[string]crisim.Image{"app:1": {Present: true}, "app:2": {Pull: 3 * time.Second}}
	scenario(t, setup{sim: crisim.Config{Images: images}}, func(n *node) {
		with := func(image string) string {
			return manifest("s", grace(10), container("web", image), does(`{"web":{"term":{"ignore":true}}}`))
		}
		n.write("s", with("app:1"))
		n.untilRuns(3*time.Second, "s", "web")
		n.write("s", with("app:2"))
		edited := time.Now()
		n.until(15*time.Second, "the new one runs", func() bool { return len(n.starts("s", "web")) == 2 })
		stop := n.only("s", "StopContainer")
		require.InDelta(n, 10*time.Second, stop.Took(), float64(time.Second))
		require.Less(n, n.only("", "PullImage").Start.Sub(edited), 200*time.Millisecond)
		removed := n.only("s", "RemovePodSandbox").End
		require.Less(n, n.calls("s", "StartContainer")[1].Start.Sub(removed), time.Second)
		require.False(n, n.calls("s", "RunPodSandbox")[1].Start.Before(stop.End))
		n.pass(time.Second)
		require.Len(n, n.stateFiles(), 1)
		require.Len(n, n.agent.Store.All(), 1)
	})
}

func TestImageThatWentAwayIsPulledAgain(t *testing.T) {
	scenario(t, setup{}, func(n *node) {
		n.write("s", manifest("s", does(`{"web":[{"exit":{"after":"30s"}},{}]}`)))
		n.untilRuns(3*time.Second, "s", "web")
		n.removeImages()
		n.pass(31 * time.Second)
		n.untilRuns(5*time.Second, "s", "web")
		require.Equal(n, 2, n.count("", "PullImage"))
	})
}

func (n *node) removeImages() {
	n.Helper()
	client := n.client()
	images, err := client.ListImages(n.Context())
	require.NoError(n, err)
	for _, i := range images {
		require.NoError(n, client.RemoveImage(n.Context(), &runtimeapi.ImageSpec{Image: i.GetId()}))
	}
}

func TestManyPodsOfOneImageArePulledOnce(t *testing.T) {
	images := map[string]crisim.Image{"app:1": {Pull: 10 * time.Second}, "other:1": {Pull: 2 * time.Second}}
	scenario(t, setup{sim: crisim.Config{Images: images}}, func(n *node) {
		for i := range 100 {
			n.disk.write(fmt.Sprintf("p%d.yaml", i), manifest(fmt.Sprintf("p%d", i)))
		}
		n.write("other", manifest("other", container("web", "other:1")))
		n.untilRuns(3*time.Second, "other", "web")
		n.pass(time.Second)
		for i := range 50 { // half of them leave: the others still want it
			n.disk.remove(fmt.Sprintf("p%d.yaml", i))
		}
		n.pass(20 * time.Second)
		require.Equal(n, 51, n.count("", "StartContainer"))
		require.Equal(n, 2, n.count("", "PullImage"))
	})
}

// BC-27, as far as the node goes.
func TestPullEndsWhenTheLastPodThatWantsItLeaves(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: map[string]crisim.Image{"app:1": {Pull: time.Hour}}}}, func(n *node) {
		n.write("a", manifest("a"))
		n.write("b", manifest("b"))
		n.pass(5 * time.Second)
		n.remove("a")
		n.pass(2 * time.Second)
		require.True(n, n.gone("a"))
		require.Zero(n, n.only("", "PullImage").End)
		n.remove("b")
		n.pass(2 * time.Second)
		require.True(n, n.gone("b"))
		require.NotZero(n, n.only("", "PullImage").End)
		require.Zero(n, n.count("", "CreateContainer"))
	})
}
