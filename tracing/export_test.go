package tracing

import sdktrace "go.opentelemetry.io/otel/sdk/trace"

// Use makes exporter the way out of a Provider that has none.
func (p *Provider) Use(exporter sdktrace.SpanExporter, ratio float64) { p.use(exporter, ratio) }
