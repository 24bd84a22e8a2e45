//go:build e2e

package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1image "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/test/devnode/images"
)

func isEvicted(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodFailed && p.Status.Reason == "Evicted"
}

// A pod that fills its volume beyond sizeLimit, and one whose log grows beyond its container's limit, are evicted and stay
// so over a restart of the agent. Their neighbour stays.
func TestPodsOverTheirLocalStorageAreEvicted(t *testing.T) {
	sawOn(t, node, "eviction over limits of local storage")
	a := newAgent(t, node)
	a.write("fills.yaml", podOf("fills", strings.ReplaceAll(`
terminationGracePeriodSeconds: 1
containers: [{name: main, image: IMAGE, args: [write, -every, 1s, /work/file, TEXT], volumeMounts: [{name: work, mountPath: /work}]}]
volumes: [{name: work, emptyDir: {sizeLimit: 64Ki}}]
`, "TEXT", strings.Repeat("x", 100_000))))
	a.write("talks.yaml", podOf("talks", strings.ReplaceAll(`
terminationGracePeriodSeconds: 1
containers: [{name: main, image: IMAGE, args: [log, -every, 10ms, TEXT], resources: {limits: {ephemeral-storage: 100Ki}}}]
`, "TEXT", strings.Repeat("y", 1000))))
	a.write("modest.yaml", podOf("modest", `
containers: [{name: main, image: IMAGE, args: [write, -every, 1s, /work/file, text], volumeMounts: [{name: work, mountPath: /work}], resources: {limits: {ephemeral-storage: 10Mi}}}]
volumes: [{name: work, emptyDir: {sizeLimit: 1Mi}}]
`))
	a.start()
	fills := a.untilPod("fills", "is evicted", isEvicted)
	require.Equal(t, `Usage of EmptyDir volume "work" exceeds the limit "64Ki". `, fills.Status.Message)
	talks := a.untilPod("talks", "is evicted", isEvicted)
	require.Equal(t, "Pod ephemeral local storage usage exceeds the total limit of containers 100Ki. ", talks.Status.Message)
	a.until("their containers have ended", func() error {
		for _, c := range a.containers() {
			if c.State == "CONTAINER_RUNNING" && c.Labels[podLabel] != a.podName("modest") {
				return fmt.Errorf("container %s of %s is %s", c.ID, c.Labels[podLabel], c.State)
			}
		}
		return nil
	})
	a.until("the volume is gone", func() error {
		dir := filepath.Join(a.root, "pods", string(fills.UID), "volumes/kubernetes.io~empty-dir/work")
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s: %w", dir, err)
		}
		return nil
	})
	a.kill()
	a.start()
	a.untilPod("fills", "is still evicted", isEvicted)
	a.untilPod("talks", "is still evicted", isEvicted)
	p := a.untilPod("modest", "is ready", isReady)
	require.Zero(t, status(p, "main").RestartCount)
}

// podName is a static pod's name on the node.
func (a *agent) podName(name string) string { return name + "-" + nodeName }

// spare serves an image that nobody else has, and returns its name.
func spare(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	built, err := images.Build(t.Context(), node.Tools.Repo)
	require.NoError(t, err)
	demo := built[images.Demo]
	config, err := demo.ConfigFile()
	require.NoError(t, err)
	config = config.DeepCopy()
	config.Config.Labels = map[string]string{"for": t.Name()}
	var img v1image.Image
	img, err = mutate.ConfigFile(demo, config)
	require.NoError(t, err)
	image := strings.TrimPrefix(server.URL, "http://") + "/spare/demo:1"
	ref, err := name.ParseReference(image, name.Insecure)
	require.NoError(t, err)
	require.NoError(t, remote.Write(ref, img))
	return image
}

// tags lists the names of the images that the runtime has; pinned ones have a mark.
func (a *agent) tags() (out []string) {
	a.t.Helper()
	var list struct {
		Images []struct {
			RepoTags []string
			Pinned   bool
		}
	}
	require.NoError(a.t, a.crictlJSON(&list, "images", "-o", "json"))
	for _, img := range list.Images {
		for _, tag := range img.RepoTags {
			if img.Pinned {
				tag += " (pinned)"
			}
			out = append(out, tag)
		}
	}
	return out
}

// An image that nothing uses goes when the disk is too full. One that a container is of, and the pinned one of the
// sandboxes, stay.
func TestUnusedImagesAreRemoved(t *testing.T) {
	sawOn(t, node, "removal of unused images")
	image := spare(t)
	a := startAgent(t, node, "used.yaml", sleeper("used"),
		"once.yaml", strings.ReplaceAll(podOf("once", `containers: [{name: main, image: SPARE, args: [sleep]}]`), "SPARE", image))
	a.untilPod("used", "is ready", isReady)
	a.untilPod("once", "is ready", isReady)
	a.remove("once.yaml")
	a.untilGone("used")
	require.Contains(t, a.tags(), image)
	a.stop()
	a.config["imageGCHighThresholdPercent"], a.config["imageGCLowThresholdPercent"], a.config["imageMinimumGCAge"] = 1, 0, "1s"
	a.start()
	a.until("the unused image is gone", func() error {
		if slices.Contains(a.tags(), image) {
			return errors.New("it is still there")
		}
		return nil
	})
	left := a.tags()
	require.Contains(t, left, node.Demo)
	require.True(t, slices.ContainsFunc(left, func(tag string) bool {
		return strings.Contains(tag, "pause") && strings.HasSuffix(tag, " (pinned)")
	}), left)
	p := a.untilPod("used", "is ready", isReady)
	require.Zero(t, status(p, "main").RestartCount)
}
