package oracle_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"

	"github.com/flowlet/flowlet/internal/manifest"
)

func TestContainerHash(t *testing.T) {
	for seed := range int64(50) {
		for _, c := range randomPod(seed).Spec.Containers {
			require.Equal(t, strconv.FormatUint(kubecontainer.HashContainer(&c), 16), manifest.ContainerHash(&c))
		}
	}
}

// TestStaticPodsOfAKubelet puts the corpus before the file source of a
// kubelet and compares what it delivers, all but the UID and the time.
func TestStaticPodsOfAKubelet(t *testing.T) {
	dir := t.TempDir()
	paths, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(path)), data, 0o600))
	}
	theirs := kubeletPods(t, dir)
	require.Len(t, theirs, len(paths)-1, "references.yaml is refused")

	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			s, err := manifest.Load(path, data, manifest.Origin{
				Source: manifest.SourceFile, Location: path, NodeName: node, Seen: time.Now(),
			})
			if filepath.Base(path) == "references.yaml" {
				require.ErrorContains(t, err, "static pods may not reference serviceaccounts")
				return
			}
			require.NoError(t, err)
			want := theirs[s.Pod.Name]
			require.NotNil(t, want, "the kubelet has no pod %s", s.Pod.Name)
			require.Len(t, s.Pod.UID, len(want.UID))
			require.Len(t, s.Pod.Annotations[manifest.AnnotationSeen], len(want.Annotations[manifest.AnnotationSeen]))
			require.Empty(t, cmp.Diff(spelt(t, withoutIdentity(want)), spelt(t, withoutIdentity(s.Pod))), "(-theirs +ours)")
		})
	}
}

func withoutIdentity(pod *v1.Pod) *v1.Pod {
	out := pod.DeepCopy()
	out.UID = ""
	out.Annotations[manifest.AnnotationHash] = fmt.Sprint(len(pod.Annotations[manifest.AnnotationHash]))
	out.Annotations[manifest.AnnotationSeen] = ""
	if out.Spec.Resources != nil { // see docs: a kubelet leaves them as they are written
		out.Spec.Resources = nil
	}
	return out
}

// kubeletPods is the first list of pods that a kubelet's file source makes of
// a directory, by name.
func kubeletPods(t *testing.T, dir string) map[string]*v1.Pod {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	t.Cleanup(func() { stop(nil) })
	pods := config.NewPodConfig(noEvents{}, noStartup{})
	config.NewSourceFile(klog.FromContext(ctx), dir, node, time.Hour, pods.Channel(ctx, kubetypes.FileSource))
	select {
	case update := <-pods.Updates():
		out := map[string]*v1.Pod{}
		for _, pod := range update.Pods {
			out[pod.Name] = pod
		}
		return out
	case <-time.After(30 * time.Second):
		require.FailNow(t, "the kubelet's source is silent")
		return nil
	}
}

type noStartup struct{}

func (noStartup) ObservedPodOnWatch(klog.Logger, *v1.Pod, time.Time) {}

type noEvents struct{ record.EventRecorderLogger }

func (noEvents) Eventf(runtime.Object, string, string, string, ...any) {}
func (e noEvents) WithLogger(klog.Logger) record.EventRecorderLogger   { return e }
