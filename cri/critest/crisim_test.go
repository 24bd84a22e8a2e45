package critest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/cri/critest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
