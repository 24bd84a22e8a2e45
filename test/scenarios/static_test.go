package scenarios_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/internal/pod"
)

// BC-01.
func TestManifestWithFixedUIDComesBackWhileItsPodEnds(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		text := manifest("s", uid("u-1"), grace(20), does(`{"web":{"term":{"ignore":true}}}`))
		n.write("s", text)
		n.untilRuns(3*time.Second, "s", "web")
		for round := range 10 {
			n.sim.ForgetCalls()
			n.remove("s")
			removed := time.Now()
			n.pass(2 * time.Second)
			n.write("s", text)
			n.until(25*time.Second, "the old one is gone and the new one runs", func() bool {
				return n.count("s", "StartContainer") == 1 && n.runs("s", "web")
			})
			stop := n.only("s", "StopContainer")
			require.Less(n, stop.Start.Sub(removed), 200*time.Millisecond, "round %d", round)
			require.LessOrEqual(n, stop.End.Sub(removed), 20*time.Second+200*time.Millisecond)
			require.GreaterOrEqual(n, stop.Took(), 19*time.Second)
			require.Less(n, n.only("s", "RunPodSandbox").Start.Sub(stop.End), time.Second)
			require.Less(n, n.only("s", "StartContainer").Start.Sub(stop.End), time.Second)
			n.pass(time.Second)
		}
	})
}

// BC-03. There is no API server at all; its pods are known from an earlier run.
func TestManifestChangedWhileTheAgentWasAway(t *testing.T) {
	scenario(t, setup{sim: crisim.Config{Images: here1}}, func(n *node) {
		foreign := n.foreign("api", "from-api")
		n.write("etcd", manifest("etcd", container("web", "app:1", args("v1"))))
		n.untilRuns(3*time.Second, "etcd", "web")
		old, _ := n.find("etcd", "web")
		n.kill()
		n.disk.write("etcd.yaml", manifest("etcd", container("web", "app:1", args("v2"))))
		n.start()
		n.until(5*time.Second, "v2 runs", func() bool {
			c, ok := n.find("etcd", "web")
			return ok && len(c.Config.GetArgs()) == 1 && c.Config.GetArgs()[0] == "v2" && n.runs("etcd", "web")
		})
		require.Equal(n, 1, n.count("etcd", "StopContainer"))
		stop, start := n.only("etcd", "StopContainer"), n.calls("etcd", "StartContainer")[1]
		require.Equal(n, old.Status.GetId(), stop.Object)
		require.False(n, start.Start.Before(stop.End))
		n.pass(time.Minute)
		require.Equal(n, foreign, n.sandbox("from-api"))
		require.True(n, n.runs("from-api", "web"))
		require.Zero(n, n.count("from-api", "StopContainer", "StopPodSandbox", "RemoveContainer", "RemovePodSandbox"))
	})
}

// client is a client of the runtime besides the agent.
func (n *node) client() *cri.Client { return cri.New(n.sim.Direct()) }

// foreign makes a pod in the runtime that this agent did not make, of a source.
func (n *node) foreign(source, name string) (sandbox string) {
	n.Helper()
	ctx := context.Background()
	client := n.client()
	config := &runtimeapi.PodSandboxConfig{
		Metadata:    &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "uid-" + name},
		Labels:      map[string]string{pod.LabelPodName: name, pod.LabelPodNamespace: "default", pod.LabelPodUID: "uid-" + name},
		Annotations: map[string]string{pod.AnnotationSource: source},
	}
	sandbox, err := client.RunPodSandbox(ctx, config, "")
	require.NoError(n, err)
	require.NoError(n, n.sim.SetImage("app:1", crisim.Image{Present: true}))
	labels := map[string]string{pod.LabelContainerName: "web"}
	for k, v := range config.GetLabels() {
		labels[k] = v
	}
	id, err := client.CreateContainer(ctx, sandbox, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "web"}, Image: &runtimeapi.ImageSpec{Image: "app:1"}, Labels: labels,
	}, config)
	require.NoError(n, err)
	require.NoError(n, client.StartContainer(ctx, id))
	return sandbox
}

// The API server's source is not configured: its pods are not ours to end.
func TestPodsOfAnUnconfiguredSourceAreLeftAlone(t *testing.T) {
	scenario(t, setup{idle: true}, func(n *node) {
		for _, source := range []string{"api", "http", ""} {
			n.foreign(source, "of-"+source)
		}
		n.sim.ForgetCalls()
		n.start()
		n.pass(10 * time.Minute)
		require.Zero(n, n.count("", writeMethods()...))
		require.Len(n, n.agent.Store.All(), 3)
	})
}

// A pod that a configured source no longer has is taken down once that source
// has told all.
func TestPodsThatTheirSourceNoLongerHasAreTakenDown(t *testing.T) {
	scenario(t, setup{idle: true}, func(n *node) {
		n.foreign("file", "left-over")
		n.start()
		n.until(5*time.Second, "it is gone", func() bool { return n.gone("left-over") })
	})
}

// BC-04, as far as files go.
func TestManifestRemovedUpdatedAndPutBack(t *testing.T) {
	scenario(t, setup{}, func(n *node) {
		n.write("s", manifest("s"))
		n.untilRuns(3*time.Second, "s", "web")
		n.kill()
		n.start()
		n.remove("s")
		n.pass(30 * time.Second)
		require.True(n, n.gone("s"))
		n.write("s", manifest("s", container("web", "app:2")))
		n.until(21*time.Second, "the new image runs", func() bool {
			c, ok := n.find("s", "web")
			return ok && n.runs("s", "web") && c.Config.GetImage().GetUserSpecifiedImage() == "app:2"
		})
	})
}

// BC-05.
func TestBackupFilesAreNoManifests(t *testing.T) {
	scenario(t, setup{}, func(n *node) {
		n.disk.write("a.yaml.backup", manifest("a", container("web", "app:1")))
		n.write("a", manifest("a", container("web", "app:2")))
		n.untilRuns(3*time.Second, "a", "web")
		n.pass(time.Minute)
		c, _ := n.find("a", "web")
		require.Equal(n, "app:2", c.Config.GetImage().GetUserSpecifiedImage())
		require.Equal(n, 1, n.count("a", "RunPodSandbox"))
		ignored := ""
		for _, f := range n.agent.files.Files() {
			if f.Ignored != "" {
				ignored += f.Path
			}
		}
		require.Equal(n, manifestDir+"/a.yaml.backup", ignored)
	})
}

// BC-05, two manifests of one name.
func TestSecondManifestOfANameChangesNothing(t *testing.T) {
	for _, first := range []string{"a", "b"} {
		t.Run(first+" was first", func(t *testing.T) {
			scenario(t, setup{}, func(n *node) {
				second := map[string]string{"a": "b", "b": "a"}[first]
				n.write(first, manifest("s", container("web", "app:1")))
				n.untilRuns(3*time.Second, "s", "web")
				writes := n.count("", writeMethods()...)
				n.write(second, manifest("s", container("web", "app:2")))
				n.pass(200*time.Second + time.Second) // ten scans
				require.Equal(n, writes, n.count("", writeMethods()...))
				conflicts := 0
				for _, f := range n.agent.files.Files() {
					if f.Conflict != "" {
						require.Equal(n, manifestDir+"/"+second+".yaml", f.Path)
						conflicts++
					}
				}
				require.Equal(n, 1, conflicts)
				n.kill()
				n.start()
				n.pass(time.Minute)
				require.Equal(n, writes, n.count("", writeMethods()...), "after a restart the one that runs keeps the name")
			})
		})
	}
}

// BC-07.
func TestManifestWithoutAName(t *testing.T) {
	scenario(t, setup{}, func(n *node) {
		n.disk.write("bad.yaml", manifest(""))
		n.write("good", manifest("good"))
		n.untilRuns(3*time.Second, "good", "web")
		require.Len(n, n.agent.Store.All(), 1)
		found := false
		for _, f := range n.agent.files.Files() {
			if f.Path == manifestDir+"/bad.yaml" {
				require.ErrorContains(n, f.Err, "metadata.name")
				require.ErrorContains(n, f.Err, "bad.yaml")
				found = true
			}
		}
		require.True(n, found)
	})
}

// BC-10: what decides a UID is what the user wrote, not what this build makes of it.
func TestRestartKeepsUIDsAndTouchesNothing(t *testing.T) {
	scenario(t, setup{}, func(n *node) {
		n.write("s", manifest("s", sidecar("log"), initContainer("init"), container("a", "app:1"), does(`{"init":{"exit":{}}}`)))
		n.untilRuns(3*time.Second, "s", "a", "log")
		n.pass(time.Second)
		v, _ := n.view("s")
		writes, files := n.count("", writeMethods()...), n.inodes()
		for range 3 {
			n.shutDown()
			n.start()
			n.pass(time.Minute)
			n.kill()
			n.start()
			n.pass(time.Minute)
		}
		now, _ := n.view("s")
		require.Equal(n, v.Key, now.Key)
		require.Equal(n, v.State.Incarnation, now.State.Incarnation)
		require.True(n, v.Status.StartTime.Equal(now.Status.StartTime))
		require.Equal(n, writes, n.count("", writeMethods()...))
		require.Len(n, n.inodes(), len(files))
	})
}

// BC-21.
func TestStateFilesThatCannotBeWritten(t *testing.T) {
	scenario(t, setup{}, func(n *node) {
		n.write("s", manifest("s"))
		n.untilRuns(3*time.Second, "s", "web")
		n.pass(2 * time.Second)
		require.Len(n, n.stateFiles(), 1)
		n.kill()
		pods := filepath.Join(n.root, "flowlet", "pods")
		require.NoError(n, os.RemoveAll(pods))
		require.NoError(n, os.WriteFile(pods, nil, 0o600)) // no file can be made below it
		n.start()
		n.pass(time.Minute)
		require.Zero(n, n.count("s", "StopContainer", "StopPodSandbox"))
		require.Equal(n, 1, n.count("s", "StartContainer"))
		require.ErrorContains(n, n.agent.Health(), "cannot persist state")
		require.NoError(n, os.Remove(pods))
		n.pass(time.Minute)
		require.NoError(n, n.agent.Health())
		require.Len(n, n.stateFiles(), 1)
	})
}

// A damaged state file stops neither the agent nor a container.
func TestDamagedStateFile(t *testing.T) {
	scenario(t, setup{}, func(n *node) {
		n.write("s", manifest("s"))
		n.untilRuns(3*time.Second, "s", "web")
		n.pass(2 * time.Second)
		n.kill()
		for _, path := range n.stateFiles() {
			require.NoError(n, os.WriteFile(path, []byte(`{"version": 1, "uid`), 0o600))
		}
		n.start()
		n.pass(time.Minute)
		require.Equal(n, 1, n.count("s", "StartContainer"))
		require.Zero(n, n.count("s", "StopContainer"))
	})
}

// BC-23.
func TestRebootWithAHalfMadeContainer(t *testing.T) {
	scenario(t, setup{}, func(n *node) {
		n.sim.Inject(crisim.Fault{Method: "StartContainer", Container: "app", Do: crisim.Fail(codes.Unknown, "not now")})
		n.write("s", manifest("s", initContainer("i1"), initContainer("i2"), container("app", "app:1"),
			does(`{"i1":{"exit":{"after":"1s"}},"i2":{"exit":{"after":"1s"}}}`)))
		n.until(10*time.Second, "app is created", func() bool { return n.count("s", "CreateContainer") == 3 })
		n.kill()
		n.sim.Reboot()
		n.sim.ClearFaults()
		n.sim.ForgetCalls()
		n.start()
		n.untilRuns(10*time.Second, "s", "app")
		n.pass(time.Minute)
		n.only("s", "RunPodSandbox")
		var order []string
		for _, c := range n.calls("s", "StartContainer") {
			order = append(order, c.Container)
		}
		require.Equal(n, []string{"i1", "i2", "app"}, order)
	})
}

// BC-37.
func TestUnmountThatHangsKeepsOnlyItsPod(t *testing.T) {
	vols := &volumes{}
	scenario(t, setup{volumes: vols}, func(n *node) {
		n.write("a", manifest("a", emptyDir("v"), container("web", "app:1", mount("v"))))
		n.untilRuns(3*time.Second, "a", "web")
		release := vols.hang("a-n1_default")
		n.remove("a")
		n.pass(10 * time.Second)
		began := time.Now()
		n.write("b", manifest("b", emptyDir("v"), container("web", "app:1", mount("v"))))
		n.untilRuns(2*time.Second, "b", "web")
		require.Less(n, time.Since(began), time.Second)
		n.pass(10 * time.Minute)
		a, ok := n.view("a")
		require.True(n, ok)
		unmount := a.Memo[stage("volume.unmount")]
		require.True(n, unmount.InFlight(), "why shows that it is unmounting, and since when")
		require.Equal(n, 1, len(n.stateFilesOf(a.Key.UID())))
		release()
		n.until(2*time.Second, "a is gone", func() bool { return n.gone("a") })
	})
}

func (n *node) stateFilesOf(uid types.UID) []string {
	files, _ := filepath.Glob(filepath.Join(n.root, "flowlet", "pods", string(uid)+".json"))
	return files
}

// BC-44.
func TestHostNetworkPodsDoNotWaitForTheNetwork(t *testing.T) {
	scenario(t, setup{idle: true}, func(n *node) {
		n.sim.SetNetwork(false)
		n.disk.write("h.yaml", manifest("h", hostNetwork))
		n.disk.write("p.yaml", manifest("p"))
		n.start()
		n.untilRuns(3*time.Second, "h", "web")
		n.pass(time.Minute)
		require.Zero(n, n.count("p", "RunPodSandbox"))
		v, _ := n.view("p")
		require.Contains(n, v.Memo[stage("sandbox")].Why, "network is not ready")
		require.Equal(n, v1.PodPending, n.phase("p"))
		n.sim.ForgetCalls()
		n.sim.SetNetwork(true)
		n.untilRuns(10*time.Second, "p", "web")
		told := n.calls("", "Status")[0]
		require.Less(n, n.only("p", "StartContainer").Start.Sub(told.End), time.Second)
	})
}
