package tracing

import (
	"context"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/flowlet/flowlet/internal/journal"
)

// Use makes exporter the way out of a Provider that has none.
func (p *Provider) Use(exporter sdktrace.SpanExporter, ratio float64) { p.use(exporter, ratio) }

// Handle makes and sends the spans of one episode, as Run does.
func (p *Provider) Handle(ctx context.Context, c journal.Closed) { p.handle(ctx, c) }
