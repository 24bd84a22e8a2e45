//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// sink is a collector that keeps what it is sent.
type sink struct {
	collector.UnimplementedTraceServiceServer

	mu        sync.Mutex
	resources []map[string]string
	spans     []*trace.Span
}

func (s *sink) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rs := range r.GetResourceSpans() {
		s.resources = append(s.resources, attributes(rs.GetResource().GetAttributes()))
		for _, ss := range rs.GetScopeSpans() {
			s.spans = append(s.spans, ss.GetSpans()...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func attributes(list []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range list {
		out[a.GetKey()] = a.GetValue().GetStringValue()
	}
	return out
}

func (s *sink) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.spans)
}

// resource is the first one that was sent.
func (s *sink) resource() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resources[0]
}

// of are the spans of one trace by their names, the trace being that whose root has this name.
func (s *sink) of(root string) map[string][]*trace.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := ""
	for _, span := range s.spans {
		if span.GetName() == root && len(span.GetParentSpanId()) == 0 {
			id = string(span.GetTraceId())
		}
	}
	out := map[string][]*trace.Span{}
	for _, span := range s.spans {
		if string(span.GetTraceId()) == id {
			out[span.GetName()] = append(out[span.GetName()], span)
		}
	}
	return out
}

// The start of a pod and its end arrive at a collector as one trace each, with the calls to the runtime below their stages.
func TestTracesArriveAtACollector(t *testing.T) {
	sawOn(t, node, "traces, at a collector in the test")
	s := &sink{}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-served)
	})

	a := newAgent(t, node)
	a.config["tracing"] = map[string]any{"endpoint": l.Addr().String(), "samplingRatePerMillion": 1000000}
	a.write("web.yaml", sleeper("web"))
	a.start()
	p := a.untilPod("web", "is ready", isReady)
	spans := a.untilTraced(s, "pod.start")
	root := spans["pod.start"][0]
	require.Equal(t, "ready", attributes(root.GetAttributes())["flowlet.outcome"])
	parents := map[string]string{}
	for name, list := range spans {
		for _, span := range list {
			require.Equal(t, string(p.UID), attributes(span.GetAttributes())["k8s.pod.uid"])
			require.LessOrEqual(t, span.GetStartTimeUnixNano(), span.GetEndTimeUnixNano())
			require.GreaterOrEqual(t, span.GetStartTimeUnixNano(), root.GetStartTimeUnixNano(), name)
			for parent, candidates := range spans {
				for _, c := range candidates {
					if string(c.GetSpanId()) == string(span.GetParentSpanId()) {
						parents[name] = parent
					}
				}
			}
		}
	}
	require.Subset(t, parents, map[string]string{
		"sandbox": "pod.start", "container": "pod.start", "cgroup": "pod.start",
		"RunPodSandbox": "sandbox", "CreateContainer": "container", "StartContainer": "container",
	})
	require.Equal(t, nodeName, s.resource()["k8s.node.name"])
	require.Equal(t, "flowlet", s.resource()["service.name"])

	a.remove("web.yaml")
	a.untilGone()
	spans = a.untilTraced(s, "pod.delete")
	require.Contains(t, spans, "StopPodSandbox")
}

// untilTraced waits until the trace with that root has arrived.
func (a *agent) untilTraced(s *sink, root string) map[string][]*trace.Span {
	a.t.Helper()
	var spans map[string][]*trace.Span
	a.until("the trace "+root+" has arrived", func() error {
		if spans = s.of(root); len(spans[root]) == 0 {
			return fmt.Errorf("there are %d spans of others", s.count())
		}
		return nil
	})
	return spans
}
