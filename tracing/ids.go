package tracing

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/journal"
)

// subject is what the IDs of a trace follow from.
type subject struct {
	pod   journal.Pod
	kind  journal.Kind
	of    string
	began time.Time
}

func subjectOf(e *journal.Episode) subject { return subject{e.Pod, e.Kind, e.Of, e.Began} }

// traceID of a pod's start or end follows from the pod's life alone, so that
// it outlives the agent; other episodes may be many, their begin tells them apart.
func (s subject) traceID() trace.TraceID {
	h := s.hash()
	return trace.TraceID(h[:16])
}

func (s subject) root() trace.SpanID {
	h := s.hash()
	return trace.SpanID(h[16:24])
}

func (s subject) hash() [32]byte {
	began := int64(0)
	if s.kind == journal.Restart || s.kind == journal.Adopt {
		began = s.began.UnixNano()
	}
	return digest(s.pod.UID, strconv.FormatInt(s.pod.Incarnation, 10), string(s.kind), s.of, strconv.FormatInt(began, 10))
}

// TraceID returns the ID of an episode's trace in hex, as viewers show it.
func TraceID(e *journal.Episode) string { return subjectOf(e).traceID().String() }

// stageSpan is the span of the attempt of a stage that began to run at since.
func stageSpan(t trace.TraceID, id dag.ID, since time.Time) trace.SpanID {
	h := digest(string(t[:]), id.Kind, id.Of, strconv.FormatInt(since.UnixNano(), 10))
	return trace.SpanID(h[:8])
}

func digest(parts ...string) [32]byte {
	var all []byte
	for _, p := range parts {
		all = append(append(all, p...), 0)
	}
	return sha256.Sum256(all)
}

// callSpan returns a new span ID. Calls of one attempt may be equal in all that
// is known beforehand, so it is drawn.
func callSpan() uint64 { return rand.Uint64() | 1 }

func spanID(n uint64) (id trace.SpanID) {
	binary.BigEndian.PutUint64(id[:], n)
	return id
}

// chosenIDs hands the SDK the IDs that a context carries.
type chosenIDs struct{}

var _ sdktrace.IDGenerator = chosenIDs{}

type idsKey struct{}

type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

func withIDs(ctx context.Context, t trace.TraceID, s trace.SpanID) context.Context {
	return context.WithValue(ctx, idsKey{}, ids{t, s})
}

// NewIDs implements sdktrace.IDGenerator.
func (chosenIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	chosen, _ := ctx.Value(idsKey{}).(ids)
	return chosen.trace, chosen.span
}

// NewSpanID implements sdktrace.IDGenerator.
func (chosenIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	chosen, _ := ctx.Value(idsKey{}).(ids)
	return chosen.span
}
