package crifact_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

func TestIdentity(t *testing.T) {
	labels := map[string]string{
		"io.kubernetes.pod.name": "web", "io.kubernetes.pod.namespace": "prod", "io.kubernetes.pod.uid": "u-1", "app": "x",
	}
	require.Equal(t, pod.Identity{Name: "web", Namespace: "prod", UID: "u-1", Source: "file"},
		crifact.Identity(labels, map[string]string{"kubernetes.io/config.source": "file"}))
	require.Equal(t, pod.Identity{}, crifact.Identity(nil, nil))
}

func TestSandbox(t *testing.T) {
	meta := &runtimeapi.PodSandboxMetadata{Name: "web", Uid: "u-1", Namespace: "prod", Attempt: 3}
	require.Equal(t,
		pod.Sandbox{ID: "s1", Attempt: 3, CreatedAt: time.Unix(0, 7), Ready: true},
		crifact.Sandbox(&runtimeapi.PodSandbox{Id: "s1", Metadata: meta, CreatedAt: 7}))
	require.Equal(t,
		pod.Sandbox{ID: "s1", Attempt: 3, IPs: []string{"10.0.0.1", "fd00::1"}, Detailed: true},
		crifact.SandboxStatus(&runtimeapi.PodSandboxStatus{
			Id: "s1", Metadata: meta, State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY,
			Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.1", AdditionalIps: []*runtimeapi.PodIP{{Ip: "fd00::1"}, {}}},
		}))
	host := crifact.SandboxStatus(&runtimeapi.PodSandboxStatus{
		Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{
			Options: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE},
		}},
	})
	require.True(t, host.HostNetwork)
	require.Nil(t, host.IPs)
}

func TestContainer(t *testing.T) {
	labels := map[string]string{"io.kubernetes.container.name": "app"}
	annotations := map[string]string{"io.kubernetes.container.hash": "ab12", "io.kubernetes.pod.terminationGracePeriod": "45"}
	want := pod.Container{
		ID: "c1", Name: "app", Attempt: 2, SandboxID: "s1", State: pod.Running, Image: "sha256:a", ImageRef: "r@sha256:b",
		ImageID: "sha256:a", Hash: "ab12", Grace: 45 * time.Second, CreatedAt: time.Unix(0, 5),
	}
	got := crifact.Container(&runtimeapi.Container{
		Id: "c1", PodSandboxId: "s1", Metadata: &runtimeapi.ContainerMetadata{Name: "app", Attempt: 2},
		Image: &runtimeapi.ImageSpec{Image: "sha256:a"}, ImageRef: "r@sha256:b", ImageId: "sha256:a",
		State: runtimeapi.ContainerState_CONTAINER_RUNNING, CreatedAt: 5, Labels: labels, Annotations: annotations,
	})
	require.Empty(t, cmp.Diff(want, got))

	want.SandboxID, want.State, want.Detailed = "", pod.Exited, true
	want.StartedAt, want.LogPath = time.Unix(0, 6), "/l/app/2.log"
	want.Exit = pod.Exit{Code: 137, Reason: "OOMKilled", Message: "m", FinishedAt: time.Unix(0, 9)}
	got = crifact.ContainerStatus(&runtimeapi.ContainerStatus{
		Id: "c1", Metadata: &runtimeapi.ContainerMetadata{Name: "app", Attempt: 2}, Image: &runtimeapi.ImageSpec{Image: "sha256:a"},
		ImageRef: "r@sha256:b", ImageId: "sha256:a", State: runtimeapi.ContainerState_CONTAINER_EXITED, CreatedAt: 5, StartedAt: 6,
		FinishedAt: 9, ExitCode: 137, Reason: "OOMKilled", Message: "m", LogPath: "/l/app/2.log", Labels: labels, Annotations: annotations,
	})
	require.Empty(t, cmp.Diff(want, got))
}

func TestContainerStates(t *testing.T) {
	for proto, want := range map[runtimeapi.ContainerState]struct {
		state   pod.ContainerState
		unknown bool
	}{
		runtimeapi.ContainerState_CONTAINER_CREATED: {pod.Created, false},
		runtimeapi.ContainerState_CONTAINER_RUNNING: {pod.Running, false},
		runtimeapi.ContainerState_CONTAINER_EXITED:  {pod.Exited, false},
		runtimeapi.ContainerState_CONTAINER_UNKNOWN: {pod.Running, true},
	} {
		row := crifact.Container(&runtimeapi.Container{State: proto})
		require.Equal(t, want.state, row.State, proto)
		require.Equal(t, want.unknown, row.Unknown, proto)
		st := crifact.ContainerStatus(&runtimeapi.ContainerStatus{State: proto, ExitCode: 3, StartedAt: -1})
		require.Equal(t, want.state, st.State, proto)
		require.Equal(t, want.state == pod.Exited, st.Exit.Code == 3, "an exit code means nothing before the exit")
		require.True(t, st.StartedAt.IsZero())
	}
}

func TestNameAndGraceOfADamagedContainer(t *testing.T) {
	c := crifact.Container(&runtimeapi.Container{
		Metadata:    &runtimeapi.ContainerMetadata{Name: "fallback"},
		Annotations: map[string]string{"io.kubernetes.pod.terminationGracePeriod": "soon"},
	})
	require.Equal(t, "fallback", c.Name)
	require.Zero(t, c.Grace)
}
