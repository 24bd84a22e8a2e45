package crisim_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
)

// BenchmarkPodStart is the calls of one pod start, client and server together, on a runtime that already holds 10,000
// pods. It is the floor of every measurement made over an in-memory connection.
func BenchmarkPodStart(b *testing.B) {
	b.Run("connection", func(b *testing.B) {
		benchmarkPodStart(b, func(sim *crisim.Runtime) connection { return sim.Conn() })
	})
	b.Run("direct", func(b *testing.B) {
		benchmarkPodStart(b, func(sim *crisim.Runtime) connection { return sim.Direct() })
	})
}

type connection interface {
	grpc.ClientConnInterface
	Close() error
}

func benchmarkPodStart(b *testing.B, connect func(*crisim.Runtime) connection) {
	ctx, cancel := context.WithCancel(b.Context())
	sim := crisim.New(crisim.Config{Lean: true, Images: map[string]crisim.Image{"app:1": {Present: true}}})
	ended := make(chan error, 1)
	go func() { ended <- sim.Run(ctx) }()
	conn := connect(sim)
	client := cri.New(conn)
	events := make(chan error, 1)
	go func() { events <- client.GetContainerEvents(ctx, func(*runtimeapi.ContainerEventResponse) {}) }()
	var made atomic.Int64
	one := func() {
		config := pod(fmt.Sprint("p", made.Add(1)), "")
		sandbox, err := client.RunPodSandbox(ctx, config, "")
		require.NoError(b, err)
		_, err = client.PodSandboxStatus(ctx, sandbox)
		require.NoError(b, err)
		image := &runtimeapi.ImageSpec{Image: "app:1"}
		_, err = client.ImageStatus(ctx, image)
		require.NoError(b, err)
		id, err := client.CreateContainer(ctx, sandbox, &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "web"}, Image: image, Labels: config.GetLabels(),
		}, config)
		require.NoError(b, err)
		require.NoError(b, client.StartContainer(ctx, id))
		list, err := client.ListContainers(ctx, &runtimeapi.ContainerFilter{LabelSelector: config.GetLabels()})
		require.NoError(b, err)
		require.Len(b, list, 1)
	}
	for range 10_000 {
		one()
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			one()
		}
	})
	b.StopTimer()
	cancel()
	require.NoError(b, <-ended)
	<-events
	require.NoError(b, conn.Close())
}
