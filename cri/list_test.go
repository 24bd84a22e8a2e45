package cri_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
)

func methods(sim *crisim.Runtime) []string {
	var out []string
	for _, c := range sim.Calls(nil) {
		out = append(out, c.Method)
	}
	sim.ForgetCalls()
	return out
}

func TestListsStreamWhereTheyCan(t *testing.T) {
	simulate(t, crisim.Config{}, func(t *testing.T, sim *crisim.Runtime, conn *grpc.ClientConn) {
		client := cri.New(conn)
		listAll(t, client)
		require.Equal(t, []string{"StreamPodSandboxes", "StreamContainers", "StreamImages"}, methods(sim))
		_, err := client.ListContainers(t.Context(), &runtimeapi.ContainerFilter{LabelSelector: map[string]string{"a": "b"}})
		require.NoError(t, err)
		_, err = client.ListPodSandbox(t.Context(), &runtimeapi.PodSandboxFilter{Id: "x"})
		require.NoError(t, err)
		require.Equal(t, []string{"ListContainers", "ListPodSandbox"}, methods(sim), "a short list is one message")
	})
}

func TestListsAskForStreamsOncePerConnection(t *testing.T) {
	simulate(t, crisim.Containerd16(crisim.Config{}), func(t *testing.T, sim *crisim.Runtime, conn *grpc.ClientConn) {
		client := cri.New(conn)
		listAll(t, client)
		require.Len(t, methods(sim), 6)
		listAll(t, client)
		require.Equal(t, []string{"ListPodSandbox", "ListContainers", "ListImages"}, methods(sim))
		sim.Inject(crisim.Fault{Method: "Version", Count: 1, Do: crisim.Fail(codes.Unavailable, "closed")})
		_, err := client.Version(t.Context())
		require.True(t, cri.IsUnavailable(err))
		sim.ForgetCalls()
		listAll(t, client)
		require.Len(t, methods(sim), 6, "the runtime may be another one now")
	})
}

func listAll(t *testing.T, client *cri.Client) {
	t.Helper()
	_, err := client.ListPodSandbox(t.Context(), nil)
	require.NoError(t, err)
	_, err = client.ListContainers(t.Context(), nil)
	require.NoError(t, err)
	_, err = client.ListImages(t.Context())
	require.NoError(t, err)
}

// 40 sandboxes with half a MiB of annotations each are 20 MiB, above the limit of a message.
func TestLongListsStayBelowTheMessageLimit(t *testing.T) {
	const pods = 40
	simulate(t, crisim.Config{StreamBatch: 10}, func(t *testing.T, _ *crisim.Runtime, conn *grpc.ClientConn) {
		client := cri.New(conn)
		ballast := map[string]string{"ballast": strings.Repeat("x", 512<<10)}
		for p := range pods {
			_, err := client.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{
				Metadata: &runtimeapi.PodSandboxMetadata{Name: fmt.Sprint("p", p)}, Annotations: ballast,
			}, "")
			require.NoError(t, err)
		}
		list, err := client.ListPodSandbox(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, list, pods)

		_, err = runtimeapi.NewRuntimeServiceClient(conn).ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{})
		require.Equal(t, cri.Refused, cri.Classify(err), "one message is too large: %v", err)
	})
}

func TestListThatBreaksIsNoList(t *testing.T) {
	simulate(t, crisim.Config{}, func(t *testing.T, sim *crisim.Runtime, conn *grpc.ClientConn) {
		client := cri.New(conn)
		_, err := client.RunPodSandbox(t.Context(), config, "")
		require.NoError(t, err)
		sim.Inject(crisim.Fault{Method: "StreamPodSandboxes", Count: 1, Do: crisim.LoseReply()})
		list, err := client.ListPodSandbox(t.Context(), nil)
		require.True(t, cri.IsUnavailable(err))
		require.Nil(t, list)
	})
}

func TestEventsEnd(t *testing.T) {
	simulate(t, crisim.Config{}, func(t *testing.T, sim *crisim.Runtime, conn *grpc.ClientConn) {
		client := cri.New(conn)
		var got int
		ended := make(chan error, 1)
		go func() {
			ended <- client.GetContainerEvents(t.Context(), func(*runtimeapi.ContainerEventResponse) { got++ })
		}()
		_, err := client.RunPodSandbox(t.Context(), config, "")
		require.NoError(t, err)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		select {
		case err := <-ended:
			t.Fatal("a stream has no deadline:", err)
		default:
		}
		sim.CloseEventStreams(nil)
		require.NoError(t, <-ended)
		require.Equal(t, 2, got)
	})
}

// A runtime without streaming lists refuses what does not fit into a message: it is asked for parts.
func TestLongListsOfARuntimeWithoutStreams(t *testing.T) {
	const pods = 36
	simulate(t, crisim.Containerd16(crisim.Config{}), func(t *testing.T, sim *crisim.Runtime, conn *grpc.ClientConn) {
		client := cri.New(conn)
		require.NoError(t, sim.SetImage("app:1", crisim.Image{Present: true}))
		ballast := map[string]string{"ballast": strings.Repeat("x", 512<<10)}
		for p := range pods {
			config := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: fmt.Sprint("p", p)}}
			if p%2 == 0 { // so that those of each state fit
				config.Annotations = ballast
			}
			sandbox, err := client.RunPodSandbox(t.Context(), config, "")
			require.NoError(t, err)
			id, err := client.CreateContainer(t.Context(), sandbox, &runtimeapi.ContainerConfig{
				Metadata: &runtimeapi.ContainerMetadata{Name: "c"}, Image: &runtimeapi.ImageSpec{Image: "app:1"}, Annotations: ballast,
			}, config)
			require.NoError(t, err)
			if p == 0 {
				continue
			}
			require.NoError(t, client.StartContainer(t.Context(), id))
			if p > 2 { // too many also by their state
				require.NoError(t, client.StopContainer(t.Context(), id, 0))
			}
			if p > 20 {
				require.NoError(t, client.StopPodSandbox(t.Context(), sandbox))
			}
		}
		containers, err := client.ListContainers(t.Context(), nil)
		require.NoError(t, err)
		states := map[runtimeapi.ContainerState]int{}
		ids := map[string]bool{}
		for _, c := range containers {
			states[c.GetState()]++
			ids[c.GetId()] = true
		}
		require.Len(t, ids, pods)
		require.Equal(t, map[runtimeapi.ContainerState]int{
			runtimeapi.ContainerState_CONTAINER_CREATED: 1, runtimeapi.ContainerState_CONTAINER_RUNNING: 2, runtimeapi.ContainerState_CONTAINER_EXITED: pods - 3,
		}, states)
		for p := range pods {
			_, err := client.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{
				Metadata: &runtimeapi.PodSandboxMetadata{Name: fmt.Sprint("q", p)}, Annotations: map[string]string{"ballast": strings.Repeat("x", 200<<10)},
			}, "")
			require.NoError(t, err)
		}
		sandboxes, err := client.ListPodSandbox(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, sandboxes, 2*pods)
	})
}
