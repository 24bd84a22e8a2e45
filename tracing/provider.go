package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/journal"
)

// Bounds of what waits to be sent. An episode is a pointer to what the journal
// has, a span some hundred bytes.
const (
	maxEpisodes  = 512
	maxSpans     = 8192
	batchSpans   = 1024
	batchDelay   = time.Second
	shutdownTime = 5 * time.Second
)

const scope = "github.com/flowlet/flowlet/tracing"

// Provider sends the traces of episodes.
type Provider struct {
	resource []attribute.KeyValue
	sampler  sampler
	spans    *sdktrace.TracerProvider // nil: no collector
	files    *files                   // nil: no directory
	log      *slog.Logger
	ended    chan journal.Closed
	dropped  atomic.Int64
}

// New connects to the collector in the background: one that is away is no
// error. Run must be called, it releases all that New took. A Config that is
// off gives a Provider that drops everything.
func New(ctx context.Context, c Config, log *slog.Logger) (*Provider, error) {
	p := &Provider{resource: resourceOf(c), log: log, ended: make(chan journal.Closed, maxEpisodes)}
	if c.Directory != "" {
		p.files = &files{dir: c.Directory, keep: orDefault(c.Files, 200)}
	}
	if c.Endpoint == "" {
		return p, nil
	}
	exporter, err := newExporter(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("tracing to %s: %w", c.Endpoint, err)
	}
	p.use(exporter, c.SamplingRatio)
	return p, nil
}

func orDefault(v, d int) int {
	if v <= 0 {
		return d
	}
	return v
}

// use makes exporter the way out.
func (p *Provider) use(exporter sdktrace.SpanExporter, ratio float64) {
	p.sampler = sampler{sdktrace.TraceIDRatioBased(ratio)}
	p.spans = sdktrace.NewTracerProvider(
		sdktrace.WithResource(resource.NewSchemaless(p.resource...)),
		sdktrace.WithIDGenerator(chosenIDs{}),
		sdktrace.WithSampler(p.sampler),
		// Blocking holds up nobody but Run, which has its own bounded queue.
		sdktrace.WithBatcher(&quiet{SpanExporter: exporter, log: p.log}, sdktrace.WithBlocking(),
			sdktrace.WithMaxQueueSize(maxSpans), sdktrace.WithMaxExportBatchSize(batchSpans), sdktrace.WithBatchTimeout(batchDelay)),
	)
}

func resourceOf(c Config) []attribute.KeyValue {
	service := c.Service
	if service == "" {
		service = "flowlet"
	}
	out := []attribute.KeyValue{attribute.String("service.name", service)}
	for _, k := range sortedKeys(c.Attributes) {
		if k != "service.name" {
			out = append(out, attribute.String(k, c.Attributes[k]))
		}
	}
	return out
}

// Ended takes an episode that is over; it never blocks. What does not fit is
// dropped and counted.
func (p *Provider) Ended(c journal.Closed) {
	if p == nil || p.spans == nil && p.files == nil || !traced(c.Kind()) {
		return
	}
	select {
	case p.ended <- c:
	default:
		p.dropped.Add(1)
	}
}

// Dropped returns how many episodes did not fit since the beginning.
func (p *Provider) Dropped() int64 { return p.dropped.Load() }

// Run makes and sends spans until ctx ends. What has ended by then is still
// sent, for at most five seconds.
func (p *Provider) Run(ctx context.Context) error {
	for {
		select {
		case c := <-p.ended:
			p.handle(ctx, c)
		case <-ctx.Done():
			return p.close(context.WithoutCancel(ctx))
		}
	}
}

func (p *Provider) close(ctx context.Context) error {
	for len(p.ended) > 0 {
		p.handle(ctx, <-p.ended)
	}
	if p.spans == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, shutdownTime, errors.New("the collector took too long"))
	defer cancel()
	if err := p.spans.Shutdown(ctx); err != nil {
		return fmt.Errorf("sending the last spans: %w", err)
	}
	return nil
}

func (p *Provider) handle(ctx context.Context, c journal.Closed) {
	e := c.Episode()
	if e.Kind == journal.Adopt && !ran(&e) {
		return // nothing was done for a pod that was up already
	}
	send := p.spans != nil && p.sampler.sampled(subjectOf(&e).traceID())
	if !send && p.files == nil {
		return
	}
	spans := treeOf(&e)
	if send {
		p.emit(context.WithoutCancel(ctx), spans)
	}
	if p.files != nil {
		if err := p.files.write(&e, p.resource, spans); err != nil {
			p.log.WarnContext(ctx, "trace file not written", "pod", e.Pod.Namespace+"/"+e.Pod.Name, "err", err)
		}
	}
}

func ran(e *journal.Episode) bool {
	return slices.ContainsFunc(e.Moves, func(m journal.Move) bool { return m.Entry.State == dag.Running })
}

// emit gives spans that are over to the SDK.
func (p *Provider) emit(ctx context.Context, spans []span) {
	tracer := p.spans.Tracer(scope)
	for i := range spans {
		s := &spans[i]
		in := withIDs(ctx, s.trace, s.id)
		if s.parent.IsValid() {
			in = trace.ContextWithSpanContext(in, trace.NewSpanContext(trace.SpanContextConfig{TraceID: s.trace, SpanID: s.parent, TraceFlags: trace.FlagsSampled}))
		}
		options := []trace.SpanStartOption{trace.WithTimestamp(s.from), trace.WithSpanKind(s.kind), trace.WithAttributes(s.attrs...)}
		if s.link.IsValid() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: s.link}))
		}
		_, out := tracer.Start(in, s.name, options...)
		if s.failed {
			out.SetStatus(codes.Error, s.message)
		}
		out.End(trace.WithTimestamp(s.to))
	}
}

// sampler decides by trace ID alone, so that all spans of a trace, and the
// runtime, agree.
type sampler struct{ sdktrace.Sampler }

func (s sampler) sampled(id trace.TraceID) bool {
	return s.Sampler != nil && s.ShouldSample(sdktrace.SamplingParameters{TraceID: id}).Decision == sdktrace.RecordAndSample
}

// quiet logs the errors of an exporter, one a minute at most, in place of the
// SDK's global error handler.
type quiet struct {
	sdktrace.SpanExporter
	log  *slog.Logger
	told time.Time // ExportSpans is never called concurrently
}

// ExportSpans implements sdktrace.SpanExporter.
func (q *quiet) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := q.SpanExporter.ExportSpans(ctx, spans)
	if err != nil && time.Since(q.told) > time.Minute {
		q.told = time.Now()
		q.log.WarnContext(ctx, "spans not sent", "spans", len(spans), "err", err)
	}
	return nil
}
