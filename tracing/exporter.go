package tracing

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
)

// newExporter makes an exporter; it connects in the background.
func newExporter(ctx context.Context, c Config) (*otlptrace.Exporter, error) {
	url := strings.Contains(c.Endpoint, "://")
	switch c.Protocol {
	case GRPC, "":
		return otlptracegrpc.New(ctx, grpcOptions(c, url)...)
	case HTTP:
		return otlptracehttp.New(ctx, httpOptions(c, url)...)
	default:
		return nil, fmt.Errorf("protocol %q: want %s or %s", c.Protocol, GRPC, HTTP)
	}
}

func grpcOptions(c Config, url bool) []otlptracegrpc.Option {
	switch {
	case url:
		return []otlptracegrpc.Option{otlptracegrpc.WithEndpointURL(c.Endpoint)}
	case c.Insecure:
		return []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(c.Endpoint), otlptracegrpc.WithInsecure()}
	default:
		return []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(c.Endpoint)}
	}
}

func httpOptions(c Config, url bool) []otlptracehttp.Option {
	switch {
	case url:
		return []otlptracehttp.Option{otlptracehttp.WithEndpointURL(c.Endpoint)}
	case c.Insecure:
		return []otlptracehttp.Option{otlptracehttp.WithEndpoint(c.Endpoint), otlptracehttp.WithInsecure()}
	default:
		return []otlptracehttp.Option{otlptracehttp.WithEndpoint(c.Endpoint)}
	}
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
