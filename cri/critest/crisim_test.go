package critest_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/cri/critest"
)

func TestMain(m *testing.M) {
	// Ends a second after its connection broke.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/moby/spdystream.(*Connection).shutdown"))
}

func TestCrisim(t *testing.T) {
	for name, cfg := range map[string]crisim.Config{
		"containerd 2":   {},
		"containerd 1.6": crisim.Containerd16(crisim.Config{}),
		"slow": {
			Slots: 2,
			Latency: map[string]crisim.Latency{
				"RunPodSandbox": crisim.Fixed(130 * time.Millisecond), "CreateContainer": crisim.LogNormal(25*time.Millisecond, 0.3),
				"StartContainer": crisim.Fixed(35 * time.Millisecond), "ContainerStatus": crisim.Fixed(time.Millisecond),
			},
			Serial: map[string]time.Duration{"CreateContainer": 8 * time.Millisecond},
		},
	} {
		t.Run(name, func(t *testing.T) {
			critest.Run(t, target(t, cfg, func(sim *crisim.Runtime) connection { return sim.Conn() }))
		})
		t.Run(name+", direct", func(t *testing.T) {
			critest.Run(t, target(t, cfg, func(sim *crisim.Runtime) connection { return sim.Direct() }))
		})
	}
}

type connection interface {
	grpc.ClientConnInterface
	Close() error
}

// target gives every case a runtime of its own, in virtual time.
func target(t *testing.T, cfg crisim.Config, connect func(*crisim.Runtime) connection) critest.Target {
	cfg.Images = map[string]crisim.Image{
		"critest.example/shell:1":   {Present: true},
		"critest.example/missing:1": {Err: errors.New("not found")},
	}
	cfg.Logs = crisim.Files{}
	return critest.Target{
		Events: !cfg.NoEvents, RuntimeConfig: !cfg.NoRuntimeConfig,
		Programs: critest.Shell(),
		Image:    "critest.example/shell:1", Pullable: "critest.example/other:1", Missing: "critest.example/missing:1",
		LogRoot: t.TempDir(),
		Open: func(t *testing.T, body func(*testing.T, critest.Runtime)) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				sim := crisim.New(cfg)
				ended := make(chan error, 1)
				go func() { ended <- sim.Run(ctx) }()
				conn := connect(sim)
				defer func() {
					require.NoError(t, conn.Close())
					cancel()
					require.NoError(t, <-ended)
				}()
				restart := func() {
					sim.Restart()
					synctest.Wait()
				}
				body(t, critest.Runtime{Client: cri.New(conn), Restart: restart})
			})
		},
	}
}

// TestCrisimStreams is in real time: streams are connections over the loopback interface.
func TestCrisimStreams(t *testing.T) {
	tgt := target(t, crisim.Config{}, nil)
	tgt.Streams = true
	tgt.Open = func(t *testing.T, body func(*testing.T, critest.Runtime)) {
		ctx, cancel := context.WithCancel(t.Context())
		sim := crisim.New(crisim.Config{Images: map[string]crisim.Image{tgt.Image: {Present: true}}})
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		ended := make(chan error, 2)
		go func() { ended <- sim.Run(ctx) }()
		go func() { ended <- sim.ServeStreams(ctx, lis) }()
		conn := sim.Conn()
		client := cri.New(conn)
		defer func() {
			require.NoError(t, conn.Close())
			cancel()
			require.NoError(t, <-ended)
			require.NoError(t, <-ended)
		}()
		require.Eventually(t, func() bool { // until ServeStreams has begun
			_, err := client.Exec(ctx, &runtimeapi.ExecRequest{ContainerId: "none"})
			return cri.IsNotFound(err)
		}, 10*time.Second, time.Millisecond)
		body(t, critest.Runtime{Client: client})
	}
	critest.RunStreams(t, tgt)
}
