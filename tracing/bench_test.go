package tracing_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/tracing"
)

type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }

// What one pod start of 16 stages costs in all: journal, spans, SDK.
func BenchmarkStart(b *testing.B) {
	p, err := tracing.New(b.Context(), tracing.Config{}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	p.Use(discard{}, 1)
	j := journal.New(journal.Options{Ended: func(c journal.Closed) { p.Handle(b.Context(), c) }})
	b.ReportAllocs()
	for b.Loop() {
		j.Begin("u", journal.Start, time.Now())
		for i := range 16 {
			stage := id("image", fmt.Sprint(i))
			var from dag.Entry
			for _, s := range []dag.State{dag.Waiting, dag.Queued, dag.Running, dag.Done} {
				to := dag.Entry{Key: dag.Key{Do: "pull"}, State: s, Since: time.Now(), Attempt: 1, Class: "image"}
				j.Moved("u", stage, from, to)
				from = to
			}
		}
		j.StartEnded("u", "ready")
	}
	ctx, cancel := context.WithCancelCause(b.Context())
	cancel(nil)
	_ = p.Run(ctx)
}
