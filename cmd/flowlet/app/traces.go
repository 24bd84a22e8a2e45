package app

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/internal/config"
	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/tracing"
)

// traces is the journal and where its ended episodes go: to a collector if one
// is configured, and into files below the root directory.
type traces struct {
	journal  *journal.Journal
	provider *tracing.Provider
}

// tracesDir is where the trace files are, below the root directory.
func tracesDir(root string) string { return filepath.Join(root, "flowlet", "traces") }

// newTraces makes the journal and connects to the collector in the background.
// The caller runs run.
func newTraces(ctx context.Context, c *config.Config, log *slog.Logger) (*traces, error) {
	tc, err := tracing.ConfigOf(c.Kubelet.Tracing, os.Getenv)
	if err != nil {
		return nil, err
	}
	if tc.Endpoint != "" && tc.SamplingRatio == 0 {
		log.Warn("tracing: an endpoint is set, but samplingRatePerMillion is 0: no trace is sent")
	}
	tc.Directory = tracesDir(c.RootDir)
	tc.Attributes = map[string]string{"k8s.node.name": c.NodeName, "service.version": Version()}
	p, err := tracing.New(ctx, tc, log)
	if err != nil {
		return nil, err
	}
	return &traces{provider: p, journal: journal.New(journal.Options{Ended: p.Ended})}, nil
}

// clientOptions make the journal see every call to the runtime, and the
// runtime the trace that a call belongs to.
func (t *traces) clientOptions() []cri.Option {
	return []cri.Option{cri.WithObserver(t.provider.Calls(t.journal))}
}

// run sends and writes until ctx ends, and then what is left, for a few seconds.
func (t *traces) run(ctx context.Context) error { return t.provider.Run(ctx) }
