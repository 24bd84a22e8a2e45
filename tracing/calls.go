package tracing

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/flowlet/flowlet/internal/journal"
)

// CallObserver sees every call to the runtime (cri.Observer).
type CallObserver interface {
	// Call is told about a call before it is sent; done when it has ended.
	Call(ctx context.Context, method string) (_ context.Context, done func(error))
}

var _ CallObserver = (*Calls)(nil)

// Calls notes the calls that stages make to the runtime and hands the runtime
// the trace they belong to. It is an observer of the CRI client.
type Calls struct {
	journal *journal.Journal
	sampler sampler
	also    []CallObserver
}

// Calls returns the observer of calls; the client has room for one, so it tells
// others as well. A nil Provider notes calls in the journal and gives the
// runtime no trace.
func (p *Provider) Calls(j *journal.Journal, also ...CallObserver) *Calls {
	c := &Calls{journal: j, also: also}
	if p != nil && p.spans != nil {
		c.sampler = p.sampler
	}
	return c
}

// Call implements CallObserver. Calls outside of a stage are not noted.
func (c *Calls) Call(ctx context.Context, method string) (_ context.Context, done func(error)) {
	all := make([]func(error), 0, len(c.also)+1)
	for _, o := range c.also {
		ctx, done = o.Call(ctx, method)
		all = append(all, done)
	}
	if r := journal.RunOf(ctx); r != nil {
		ctx, done = c.note(ctx, r, method)
		all = append(all, done)
	}
	return ctx, func(err error) {
		for _, done := range slices.Backward(all) {
			done(err)
		}
	}
}

func (c *Calls) note(ctx context.Context, r *journal.Run, method string) (_ context.Context, done func(error)) {
	call := journal.Call{Method: method, From: time.Now(), Span: callSpan()}
	out := ctx
	if traced(r.Kind) {
		id := subject{r.Pod, r.Kind, r.Of, r.Began}.traceID()
		if c.sampler.sampled(id) {
			out = metadata.AppendToOutgoingContext(ctx, "traceparent", traceparent(id, spanID(call.Span)))
		}
	}
	return out, func(err error) {
		call.To = time.Now()
		if err != nil {
			call.Err = err.Error()
		}
		c.journal.Called(ctx, call)
	}
}

// traceparent is the header of the W3C trace context, sampled.
func traceparent(t trace.TraceID, s trace.SpanID) string {
	return "00-" + t.String() + "-" + s.String() + "-01"
}

// traced reports whether episodes of that kind are traces.
func traced(k journal.Kind) bool { return k != journal.Quiet }
