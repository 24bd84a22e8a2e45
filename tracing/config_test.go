package tracing_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	"k8s.io/utils/ptr"

	"github.com/flowlet/flowlet/tracing"
)

func at(ms int) time.Time { return time.Unix(1_700_000_000, int64(ms)*int64(time.Millisecond)) }

func TestConfigOf(t *testing.T) {
	for _, c := range []struct {
		name  string
		block *tracingapi.TracingConfiguration
		env   map[string]string
		want  tracing.Config
		err   string
	}{
		{name: "nothing set: off"},
		{name: "an empty block", block: &tracingapi.TracingConfiguration{}, want: tracing.Config{Endpoint: "localhost:4317", Protocol: tracing.GRPC, Insecure: true}},
		{
			name:  "a block wins over variables",
			block: &tracingapi.TracingConfiguration{Endpoint: ptr.To("otel:4317"), SamplingRatePerMillion: ptr.To[int32](250_000)},
			env:   map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://other:4317"},
			want:  tracing.Config{Endpoint: "otel:4317", Protocol: tracing.GRPC, Insecure: true, SamplingRatio: 0.25},
		},
		{
			name: "gRPC by variables",
			env: map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_SERVICE_NAME": "edge", "OTEL_RESOURCE_ATTRIBUTES": "a=b, c=d,e",
				"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.5",
			},
			want: tracing.Config{Endpoint: "http://c:4317", Protocol: tracing.GRPC, SamplingRatio: 0.5, Service: "edge", Attributes: map[string]string{"a": "b", "c": "d"}},
		},
		{
			name: "HTTP: the common endpoint is a base URL",
			env:  map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
			want: tracing.Config{Endpoint: "http://c:4318/v1/traces", Protocol: tracing.HTTP, SamplingRatio: 1, Attributes: map[string]string{}},
		},
		{
			name: "HTTP: the endpoint for traces is used as it is",
			env:  map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/x", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_TRACES_SAMPLER": "always_off"},
			want: tracing.Config{Endpoint: "http://c:4318/x", Protocol: tracing.HTTP, Attributes: map[string]string{}},
		},
		{name: "disabled", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"}},
		{name: "no exporter", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"}},
		{name: "a protocol that is not supported", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, err: `OTEL_EXPORTER_OTLP_PROTOCOL "http/json": want grpc or http/protobuf`},
		{name: "a ratio out of range", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"}, err: "want a number from 0 to 1"},
		{name: "an unknown sampler", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_SAMPLER": "dice"}, err: `OTEL_TRACES_SAMPLER "dice"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := tracing.ConfigOf(c.block, func(k string) string { return c.env[k] })
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}
