package pleg_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/sources/pleg"
)

var _ pleg.Runtime = (*cri.Client)(nil)

// TestAgainstTheSimulatedRuntime follows a pod through its life and through
// what happens to its runtime, over gRPC.
func TestAgainstTheSimulatedRuntime(t *testing.T) {
	for name, cfg := range map[string]crisim.Config{
		"containerd 2":              {},
		"containerd 1.6, no events": crisim.Containerd16(crisim.Config{}),
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { follow(t, cfg) }) })
	}
}

func follow(t *testing.T, cfg crisim.Config) {
	t.Helper()
	sim := crisim.New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	simEnded, ended := make(chan error, 1), make(chan error, 1)
	go func() { simEnded <- sim.Run(ctx) }()
	conn := sim.Conn()
	client := cri.New(conn)
	s := newStore()
	src := pleg.New(pleg.Config{Runtime: client, Known: s.known, State: s.state})
	go func() { ended <- src.Run(ctx, s.emit) }()
	defer func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, conn.Close())
		<-simEnded
	}()
	later(5 * time.Second)
	s.want("a")
	require.True(t, s.isSynced())
	require.Equal(t, !cfg.NoEvents, src.Health().Events)

	made := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "a", Namespace: "ns", Uid: "a"}, Labels: labels("a", ""),
		Annotations: map[string]string{pod.AnnotationSource: "file"},
	}
	sb, err := client.RunPodSandbox(ctx, made, "")
	require.NoError(t, err)
	start := func(attempt uint32) string {
		id, err := client.CreateContainer(ctx, sb, &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "web", Attempt: attempt}, Labels: labels("a", "web"),
			Image: &runtimeapi.ImageSpec{Image: "web:1"},
		}, made)
		require.NoError(t, err)
		require.NoError(t, client.StartContainer(ctx, id))
		return id
	}
	_, err = client.PullImage(ctx, &runtimeapi.ImageSpec{Image: "web:1"}, nil, made)
	require.NoError(t, err)
	first := start(0)
	later(1100 * time.Millisecond)
	require.Equal(t, pod.Running, s.state("a").Containers[0].State)
	require.NotEmpty(t, s.state("a").Sandboxes[0].IPs)

	require.NoError(t, sim.Kill(first, crisim.Exit{Code: 9}))
	later(1100 * time.Millisecond)
	require.Equal(t, int32(9), s.state("a").Containers[0].Exit.Code)

	sim.Down()
	second := time.Now()
	later(20 * time.Second)
	require.False(t, s.lastRuntime().Ready)
	require.Error(t, src.Health().ListErr)
	sim.Up()
	later(10 * time.Second)
	require.True(t, s.lastRuntime().Ready)
	require.True(t, src.Health().Listed.After(second))

	again := start(1)
	later(1100 * time.Millisecond)
	require.Equal(t, again, s.state("a").Containers[0].ID)
	require.Equal(t, pod.Running, s.state("a").Containers[0].State)

	sim.Reboot()
	later(35 * time.Second)
	require.Equal(t, pod.Exited, s.state("a").Containers[0].State)
	require.Equal(t, int32(255), s.state("a").Containers[0].Exit.Code)
	require.False(t, s.state("a").Sandboxes[0].Ready)

	require.NoError(t, client.RemovePodSandbox(ctx, sb))
	later(1100 * time.Millisecond)
	require.False(t, s.state("a").HasRemains())
}
