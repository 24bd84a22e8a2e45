package tracing_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/tracing"
)

// sink is a collector that keeps what it is sent.
type sink struct {
	collector.UnimplementedTraceServiceServer

	mu       sync.Mutex
	requests []*collector.ExportTraceServiceRequest
}

func (s *sink) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	return &collector.ExportTraceServiceResponse{}, nil
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var req collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &req) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_, _ = s.Export(r.Context(), &req)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (s *sink) spans() (resource map[string]string, spans []*tracepb.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resource = map[string]string{}
	for _, r := range s.requests {
		for _, rs := range r.GetResourceSpans() {
			for _, a := range rs.GetResource().GetAttributes() {
				resource[a.GetKey()] = a.GetValue().GetStringValue()
			}
			for _, ss := range rs.GetScopeSpans() {
				spans = append(spans, ss.GetSpans()...)
			}
		}
	}
	return resource, spans
}

// tell makes a provider export one short start, and closes it.
func tell(t *testing.T, c tracing.Config) journal.Episode {
	t.Helper()
	p, err := tracing.New(t.Context(), c, slog.New(slog.NewTextHandler(t.Output(), nil)))
	require.NoError(t, err)
	var ep journal.Episode
	j := journal.New(journal.Options{Ended: func(c journal.Closed) {
		ep = c.Episode()
		p.Ended(c)
	}})
	shortStart(j, "uid-1")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the agent stops"))
	require.NoError(t, p.Run(ctx))
	return ep
}

// shortStart tells a journal of one start whose container took a millisecond.
func shortStart(j *journal.Journal, k pod.Key) {
	now := time.Now().Add(-10 * ms)
	j.Begin(k, journal.Start, now)
	running := dag.Entry{Key: dag.Key{Do: "start"}, State: dag.Running, Since: now, Attempt: 1}
	done := dag.Entry{Key: dag.Key{Do: "start"}, State: dag.Done, Since: now.Add(ms), Attempt: 1}
	j.Moved(k, id("container", "web"), dag.Entry{}, running)
	j.Moved(k, id("container", "web"), running, done)
	j.StartEnded(k, "ready")
}

func TestCollectorOverGRPC(t *testing.T) {
	var s sink
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, &s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	ep := tell(t, tracing.Config{
		Endpoint: l.Addr().String(), Insecure: true, SamplingRatio: 1, Attributes: map[string]string{"k8s.node.name": "n1"},
	})
	server.Stop()
	require.NoError(t, <-served)
	arrived(t, &s, ep)
	resource, _ := s.spans()
	require.Equal(t, map[string]string{"service.name": "flowlet", "k8s.node.name": "n1"}, resource)
}

func TestCollectorOverHTTP(t *testing.T) {
	var s sink
	server := httptest.NewServer(&s)
	defer server.Close()
	ep := tell(t, tracing.Config{Endpoint: server.URL + "/v1/traces", Protocol: tracing.HTTP, SamplingRatio: 1})
	arrived(t, &s, ep)
}

func arrived(t *testing.T, s *sink, ep journal.Episode) {
	t.Helper()
	_, spans := s.spans()
	require.Len(t, spans, 3, "the time until it was found ready has a span")
	require.Equal(t, "pod.start", spans[0].GetName())
	require.Empty(t, spans[0].GetParentSpanId())
	require.Equal(t, uint64(ep.Began.UnixNano()), spans[0].GetStartTimeUnixNano())
	require.Equal(t, "container", spans[1].GetName())
	require.Equal(t, spans[0].GetSpanId(), spans[1].GetParentSpanId())
	require.Equal(t, uint64(ms), spans[1].GetEndTimeUnixNano()-spans[1].GetStartTimeUnixNano())
}

func TestCollectorAwayIsNoError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	endpoint := l.Addr().String()
	require.NoError(t, l.Close())
	p, err := tracing.New(t.Context(), tracing.Config{Endpoint: endpoint, Insecure: true, SamplingRatio: 1}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the agent stops"))
	require.NoError(t, p.Run(ctx), "nothing was to be sent")
}

func TestUnknownProtocol(t *testing.T) {
	_, err := tracing.New(t.Context(), tracing.Config{Endpoint: "x:1", Protocol: "smoke"}, nil)
	require.ErrorContains(t, err, `tracing to x:1: protocol "smoke": want grpc or http/protobuf`)
}
