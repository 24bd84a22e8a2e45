package app

import (
	"log/slog"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/config"
	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/internal/pod"
)

// traces connects the agent with OpenTelemetry, where that is configured.
type traces struct{}

func newTraces(*config.Config, *slog.Logger) (*traces, error) { return &traces{}, nil }

func (t *traces) observers() []dag.Observer[pod.Key] { return nil }

func (t *traces) ended(journal.Closed) {}

func (t *traces) clientOptions() []cri.Option { return nil }

func (t *traces) close() error { return nil }
