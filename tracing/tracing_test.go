package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/tracing"
)

// The pod is ready while the runtime still answers StartContainer (250..270 ms).
func TestACallThatOutlivesTheStartIsInItsTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, tracing.Config{})
		w.start(255 * ms)
		w.journal.StartEnded(w.key, "ready")
		time.Sleep(time.Second)
		w.stop()
		spans := w.exported.GetSpans()
		took := func(name string) time.Duration {
			s := byName(spans, name)
			require.Len(t, s, 1, name)
			require.Equal(t, spans[0].SpanContext.TraceID(), s[0].SpanContext.TraceID())
			return s[0].EndTime.Sub(spans[0].StartTime)
		}
		require.Equal(t, "pod.start", spans[0].Name)
		require.Equal(t, 255*ms, took("pod.start"))
		require.Equal(t, 270*ms, took("StartContainer"))
		require.Equal(t, 270*ms, took("container"))
		require.Equal(t, "ok", attributesOf(byName(spans, "container")[0])["flowlet.outcome"])
		require.Contains(t, attributesOf(spans[0])["flowlet.critical_path"], "container[web] running 25ms")
	})
}

// One start on the real engine: pull of proxy 0..50 while web is queued, pull of
// web 50..90 fails, back-off ..190, pull ..230; container ..270; ready at 2 s.
func TestOneTracePerStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, tracing.Config{})
		began := time.Now()
		w.start(2 * time.Second)
		w.journal.StartEnded(w.key, "ready")
		w.stop()
		spans := w.exported.GetSpans()

		roots := 0
		ids := map[trace.SpanID]tracetest.SpanStub{}
		for _, s := range spans {
			require.Equal(t, spans[0].SpanContext.TraceID(), s.SpanContext.TraceID())
			require.NotContains(t, ids, s.SpanContext.SpanID(), "span IDs are unique")
			ids[s.SpanContext.SpanID()] = s
			if !s.Parent.IsValid() {
				roots++
			}
			a := attributesOf(s)
			require.Equal(t, []string{"shop", "web", "uid-1"}, []string{a["k8s.namespace.name"], a["k8s.pod.name"], a["k8s.pod.uid"]})
		}
		require.Equal(t, 1, roots, "exactly one root")
		for _, s := range spans {
			require.False(t, s.EndTime.Before(s.StartTime), "%s is not negative", s.Name)
			if s.Parent.IsValid() {
				p, ok := ids[s.Parent.SpanID()]
				require.True(t, ok, "the parent of %s is there", s.Name)
				require.False(t, s.StartTime.Before(p.StartTime) || s.EndTime.After(p.EndTime), "%s lies within %s", s.Name, p.Name)
			}
		}

		root := byName(spans, "pod.start")[0]
		require.True(t, root.StartTime.Equal(began))
		require.Equal(t, 2*time.Second, root.EndTime.Sub(root.StartTime))
		require.Equal(t, "ready", attributesOf(root)["flowlet.outcome"])
		require.Contains(t, attributesOf(root)["flowlet.critical_path"], "image[web:1] running 40ms")

		pulls := byName(spans, "image")
		require.Len(t, pulls, 3)
		first, second := pulls[1], pulls[2]
		require.Equal(t, codes.Error, first.Status.Code)
		require.Equal(t, "connection refused", first.Status.Description)
		require.Equal(t, "ErrImagePull", attributesOf(first)["error.type"])
		require.Equal(t, 90*ms, first.EndTime.Sub(first.StartTime), "its time in the queue is part of it")
		require.Equal(t, "2", attributesOf(second)["flowlet.attempt"])
		require.Equal(t, "ok", attributesOf(second)["flowlet.outcome"])
		require.Equal(t, "web:1", attributesOf(second)["container.image.name"])

		queue := byName(spans, "queue")
		require.Len(t, queue, 1)
		require.Equal(t, 50*ms, queue[0].EndTime.Sub(queue[0].StartTime))
		require.Equal(t, first.SpanContext.SpanID(), queue[0].Parent.SpanID())
		backoff := byName(spans, "back-off")
		require.Len(t, backoff, 1)
		require.Equal(t, 100*ms, backoff[0].EndTime.Sub(backoff[0].StartTime))
		require.Equal(t, second.SpanContext.SpanID(), backoff[0].Parent.SpanID())

		container := byName(spans, "container")[0]
		require.Equal(t, "web", attributesOf(container)["container.name"])
		start := byName(spans, "StartContainer")[0]
		require.Equal(t, container.SpanContext.SpanID(), start.Parent.SpanID())
		require.Equal(t, trace.SpanKindClient, start.SpanKind)
		require.Equal(t, 20*ms, start.EndTime.Sub(start.StartTime))

		require.Len(t, w.parents, 6)
		last := start.SpanContext
		require.Equal(t, "00-"+last.TraceID().String()+"-"+last.SpanID().String()+"-01", w.parents[5], "the runtime is given the span of the call")
		noGaps(t, root, spans)
	})
}

// noGaps: at every moment of the root some child of it is going on.
func noGaps(t *testing.T, root tracetest.SpanStub, spans tracetest.SpanStubs) {
	t.Helper()
	at := root.StartTime
	for at.Before(root.EndTime) {
		covered := at
		for _, s := range spans {
			if s.Parent.SpanID() == root.SpanContext.SpanID() && !s.StartTime.After(at.Add(ms)) && s.EndTime.After(covered) {
				covered = s.EndTime
			}
		}
		require.True(t, covered.After(at), "nothing explains what happened after %v", at.Sub(root.StartTime))
		at = covered
	}
}

func TestRestartAndDeletionAreTracesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, tracing.Config{})
		w.start(2 * time.Second)
		w.journal.StartEnded(w.key, "ready")
		w.want(w.podGraph("1")) // the container ended
		time.Sleep(time.Second)
		w.fold(pod.SpecGone{Source: pod.SourceFile, At: time.Now()})
		time.Sleep(time.Second)
		w.want(nil)
		require.True(t, w.engine.Forget(w.key))
		w.fold(pod.Gone{At: time.Now()})
		w.stop()
		spans := w.exported.GetSpans()
		start, restart, end := byName(spans, "pod.start")[0], byName(spans, "container.restart"), byName(spans, "pod.delete")
		require.Len(t, restart, 1)
		require.Len(t, end, 1)
		require.Equal(t, 40*ms, restart[0].EndTime.Sub(restart[0].StartTime))
		for _, s := range []tracetest.SpanStub{restart[0], end[0]} {
			require.NotEqual(t, start.SpanContext.TraceID(), s.SpanContext.TraceID())
			require.Len(t, s.Links, 1)
			require.True(t, s.Links[0].SpanContext.Equal(start.SpanContext.WithTraceFlags(trace.FlagsSampled)) ||
				s.Links[0].SpanContext.SpanID() == start.SpanContext.SpanID(), "it is linked with the start")
			require.Equal(t, "uid-1", attributesOf(s)["k8s.pod.uid"])
		}
		require.Equal(t, "web", attributesOf(restart[0])["container.name"])
	})
}

func TestSameTraceAfterAgentRestart(t *testing.T) {
	p := journal.Pod{UID: "u", Namespace: "n", Name: "p", Incarnation: 42}
	one := journal.Episode{Pod: p, Kind: journal.Start, Began: time.Unix(1, 0)}
	two := journal.Episode{Pod: p, Kind: journal.Start, Began: time.Unix(9, 0)}
	require.Equal(t, tracing.TraceID(&one), tracing.TraceID(&two))
	again := two
	again.Pod.Incarnation = 43
	require.NotEqual(t, tracing.TraceID(&one), tracing.TraceID(&again), "another life of the UID is another trace")
	restart := one
	restart.Kind, restart.Of = journal.Restart, "web"
	later := restart
	later.Began = time.Unix(2, 0)
	require.NotEqual(t, tracing.TraceID(&restart), tracing.TraceID(&later))
}

func TestUnsampledStartIsExportedNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, tracing.Config{})
		w.start(2 * time.Second)
		w.journal.StartEnded(w.key, "ready")
		w.stop()
		require.Empty(t, w.exported.GetSpans())
		require.Equal(t, []string{"", "", "", "", "", ""}, w.parents)
		require.Len(t, w.journal.Episodes(w.key)[0].Calls, 6, "the journal has the calls all the same")
	})
}

func TestEndedNeverBlocks(t *testing.T) {
	p, err := tracing.New(t.Context(), tracing.Config{Directory: t.TempDir()}, nil)
	require.NoError(t, err)
	j := journal.New(journal.Options{Ended: p.Ended})
	for range 600 { // nobody runs the provider
		j.Begin("u", journal.Start, time.Now())
		j.Event("u", journal.Event{Change: "x"})
		j.End("u", "done")
	}
	require.Equal(t, int64(600-512), p.Dropped())
}

func TestOffDropsEverything(t *testing.T) {
	require.False(t, tracing.Config{}.Enabled())
	p, err := tracing.New(t.Context(), tracing.Config{}, nil)
	require.NoError(t, err)
	j := journal.New(journal.Options{Ended: p.Ended})
	j.Begin("u", journal.Start, time.Now())
	j.Event("u", journal.Event{Change: "x"})
	j.End("u", "done")
	require.Zero(t, p.Dropped())
	var none *tracing.Provider
	none.Ended(journal.Closed{})
	ctx, done := none.Calls(j).Call(t.Context(), "Version")
	require.Equal(t, t.Context(), ctx)
	done(nil)
}

type counted map[string]int

func (c counted) Call(ctx context.Context, method string) (context.Context, func(error)) {
	return ctx, func(err error) { c[method+" "+fmt.Sprint(err)]++ }
}

func TestCallsAreToldToOthers(t *testing.T) {
	var none *tracing.Provider
	others := counted{}
	j := journal.New(journal.Options{})
	calls := none.Calls(j, others)
	_, done := calls.Call(t.Context(), "Version")
	done(nil)
	j.Begin("u", journal.Start, time.Now())
	ctx, done := calls.Call(j.Context(t.Context(), "u", id("image", "i")), "PullImage")
	done(errors.New("no"))
	require.Equal(t, counted{"Version <nil>": 1, "PullImage no": 1}, others)
	require.Len(t, j.Episodes("u")[0].Calls, 1)
	require.NotNil(t, journal.RunOf(ctx))
}
