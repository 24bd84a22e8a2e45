package app

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/internal/nodehttp"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/hook"
	"github.com/flowlet/flowlet/stages/probe"
)

// userAgentVersion is the version in the User-Agent of probes and hooks.
const userAgentVersion = "1.37"

// commands runs commands in containers.
type commands struct{ runtime *cri.Client }

// ExecSync implements the Executors of probes and hooks.
func (c commands) ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (*runtimeapi.ExecSyncResponse, error) {
	r, err := c.runtime.ExecSync(ctx, id, command, timeout)
	if err != nil {
		return nil, err
	}
	return &runtimeapi.ExecSyncResponse{Stdout: r.Stdout, Stderr: r.Stderr, ExitCode: r.ExitCode}, nil
}

// probes checks containers.
type probes struct {
	*probe.Prober
	nodeIPs []string
}

func newProbes(p Parts, events pod.Recorder) probes {
	return probes{probe.New(probe.Config{
		Exec: commands{p.Runtime}, HTTP: nodehttp.New(), Events: events, Version: userAgentVersion,
	}), p.Node.IPs}
}

func (p probes) Check(ctx context.Context, s *pod.State, c *v1.Container, id string, kind probe.Kind) probe.Result {
	return p.Prober.Check(ctx, probe.Target{
		Pod: s.Pod(), Container: c, ID: id, PodIPs: podIPs(s), NodeIP: first(p.nodeIPs), Kind: kind, Probe: kind.Of(c),
	})
}

// hooks runs containers' hooks.
type hooks struct {
	*hook.Hooks
	nodeIPs []string
}

func newHooks(p Parts, events pod.Recorder) hooks {
	return hooks{hook.New(hook.Config{
		Exec: commands{p.Runtime}, HTTP: nodehttp.New(), Events: events, Version: userAgentVersion,
	}), p.Node.IPs}
}

func (h hooks) Run(ctx context.Context, s *pod.State, c *v1.Container, id string, kind hook.Kind) error {
	handler := c.Lifecycle.PostStart
	if kind == hook.PreStop {
		handler = c.Lifecycle.PreStop
	}
	return h.Hooks.Run(ctx, hook.Target{
		Pod: s.Pod(), Container: c, ID: id, PodIPs: podIPs(s), NodeIP: first(h.nodeIPs), Kind: kind,
	}, handler)
}

func podIPs(s *pod.State) []string {
	sb, _ := s.Sandbox()
	return sb.IPs
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
