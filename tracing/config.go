package tracing

import (
	"fmt"
	"strconv"
	"strings"

	tracingapi "k8s.io/component-base/tracing/api/v1"
)

// Protocol is how spans travel to the collector.
type Protocol string

// The protocols of OTLP, by the names that OpenTelemetry's variables use.
const (
	GRPC Protocol = "grpc"
	HTTP Protocol = "http/protobuf"
)

// defaultEndpoint is where a KubeletConfiguration without endpoint sends its
// spans (k8s.io/component-base v0.37.2).
const defaultEndpoint = "localhost:4317"

// Config says where traces go. A Config without Endpoint and Directory is off.
type Config struct {
	// Endpoint is host:port, or a URL. https:// means TLS, http:// none.
	Endpoint string
	Protocol Protocol // empty means GRPC
	// Insecure means no TLS for an Endpoint without a scheme.
	Insecure bool
	// SamplingRatio is the share of traces that is exported, from 0 to 1. Which
	// ones follows from the trace ID: all traces of a node agree about a pod.
	SamplingRatio float64
	// Service is the resource's service.name; empty means flowlet.
	Service string
	// Attributes are more attributes of the resource, for instance
	// k8s.node.name and service.version.
	Attributes map[string]string

	// Directory, if not empty, gets a file of OTLP JSON per episode, whatever
	// SamplingRatio says. It is made when it does not exist.
	Directory string
	// Files bounds the number of files in Directory, oldest first (0: 200).
	Files int
}

// Enabled reports whether traces go anywhere.
func (c Config) Enabled() bool { return c.Endpoint != "" || c.Directory != "" }

// ConfigOf reads the tracing block of a KubeletConfiguration, or else the
// variables of OpenTelemetry (OTEL_EXPORTER_OTLP_[TRACES_]ENDPOINT, _PROTOCOL,
// _INSECURE, OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG, OTEL_SERVICE_NAME,
// OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_EXPORTER=none, OTEL_SDK_DISABLED);
// without either tracing is off. The block wins as a whole. As in the kubelet,
// a block without samplingRatePerMillion samples nothing and its connection
// has no TLS. Headers, certificates, time-out and compression are read from
// their OTEL_EXPORTER_OTLP_ variables by the exporter itself.
func ConfigOf(block *tracingapi.TracingConfiguration, getenv func(string) string) (Config, error) {
	if block != nil {
		c := Config{Endpoint: defaultEndpoint, Protocol: GRPC, Insecure: true}
		if block.Endpoint != nil && *block.Endpoint != "" {
			c.Endpoint = *block.Endpoint
		}
		if block.SamplingRatePerMillion != nil {
			c.SamplingRatio = float64(*block.SamplingRatePerMillion) / 1e6
		}
		return c, nil
	}
	return fromEnvironment(getenv)
}

func fromEnvironment(getenv func(string) string) (Config, error) {
	either := func(name string) string {
		if v := getenv("OTEL_EXPORTER_OTLP_TRACES_" + name); v != "" {
			return v
		}
		return getenv("OTEL_EXPORTER_OTLP_" + name)
	}
	endpoint := either("ENDPOINT")
	if endpoint == "" || strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return Config{}, nil
	}
	c := Config{Endpoint: endpoint, Service: getenv("OTEL_SERVICE_NAME"), Attributes: pairs(getenv("OTEL_RESOURCE_ATTRIBUTES"))}
	c.Insecure = strings.EqualFold(either("INSECURE"), "true")
	switch p := either("PROTOCOL"); p {
	case "", string(GRPC): // gRPC is this agent's default
		c.Protocol = GRPC
	case string(HTTP):
		c.Protocol = HTTP
		if getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" { // the common variable is a base URL
			c.Endpoint = strings.TrimSuffix(c.Endpoint, "/") + "/v1/traces"
		}
	default:
		return Config{}, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL %q: want %s or %s", p, GRPC, HTTP)
	}
	ratio, err := ratioOf(getenv("OTEL_TRACES_SAMPLER"), getenv("OTEL_TRACES_SAMPLER_ARG"))
	c.SamplingRatio = ratio
	return c, err
}

func ratioOf(sampler, arg string) (float64, error) {
	switch strings.TrimPrefix(sampler, "parentbased_") {
	case "", "always_on":
		return 1, nil
	case "always_off":
		return 0, nil
	case "traceidratio":
		if arg == "" {
			return 1, nil
		}
		ratio, err := strconv.ParseFloat(arg, 64)
		if err != nil || ratio < 0 || ratio > 1 {
			return 0, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG %q: want a number from 0 to 1", arg)
		}
		return ratio, nil
	default:
		return 0, fmt.Errorf("OTEL_TRACES_SAMPLER %q: want always_on, always_off or traceidratio, with or without parentbased_", sampler)
	}
}

// pairs reads a=b,c=d; what is no pair is left out.
func pairs(list string) map[string]string {
	out := map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		if k, v, ok := strings.Cut(strings.TrimSpace(pair), "="); ok && k != "" {
			out[k] = v
		}
	}
	return out
}
