package tracing_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/tracing"
)

const ms = time.Millisecond

func id(kind, of string) dag.ID { return dag.ID{Kind: kind, Of: of} }

// world is an engine with one pod, whose stages call a runtime that sleeps.
type world struct {
	t        *testing.T
	journal  *journal.Journal
	provider *tracing.Provider
	exported *tracetest.InMemoryExporter
	calls    *tracing.Calls
	engine   *dag.Engine[pod.Key, int]
	stop     func()
	key      pod.Key
	state    *pod.State

	mu      sync.Mutex // guards what follows, and serialises the steps
	parents []string   // traceparent that the runtime was given, in order
	pulls   int
	graph   *dag.Graph[int]
}

func newWorld(t *testing.T, ratio float64, c tracing.Config) *world {
	t.Helper()
	w := &world{t: t, exported: tracetest.NewInMemoryExporter(), key: "uid-1"}
	var err error
	w.provider, err = tracing.New(t.Context(), c, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	if c.Endpoint == "" && c.Directory == "" {
		w.provider.Use(keep{w.exported}, ratio)
	}
	w.journal = journal.New(journal.Options{Ended: w.provider.Ended})
	w.calls = w.provider.Calls(w.journal)
	step := make(chan struct{}, 1)
	w.engine = dag.New(
		dag.Policy{"": {}, "image": {Slots: 1, Backoff: dag.Backoff{Initial: 100 * ms}}},
		func(pod.Key, dag.ID, int, error) {
			select {
			case step <- struct{}{}:
			default: // one is enough: the step sees everything
			}
		}, dag.Options[pod.Key]{Observer: w.journal})
	w.run(step)
	return w
}

// keep keeps what was exported when the provider shuts down.
type keep struct{ *tracetest.InMemoryExporter }

func (keep) Shutdown(context.Context) error { return nil }

func (w *world) run(step chan struct{}) {
	ctx, cancel := context.WithCancelCause(w.t.Context())
	done := make(chan error, 3)
	go func() { done <- w.engine.Run(ctx) }()
	go func() { done <- w.provider.Run(ctx) }()
	go func() {
		var wake <-chan time.Time
		for {
			select {
			case <-ctx.Done():
				done <- nil
				return
			case <-step:
			case <-wake:
			}
			wake = nil
			if next := w.step(); !next.IsZero() {
				wake = time.After(max(0, time.Until(next)))
			}
		}
	}()
	w.stop = func() {
		cancel(errors.New("the test is over"))
		for range 3 {
			require.NoError(w.t, <-done)
		}
	}
}

func (w *world) step() (next time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.graph != nil {
		_, next = w.engine.Step(w.key, w.graph)
	}
	return next
}

// want makes g the pod's graph.
func (w *world) want(g *dag.Graph[int]) {
	w.mu.Lock()
	w.graph = g
	w.mu.Unlock()
	w.step()
}

func (w *world) fold(c pod.Change) {
	if next, changed := pod.Fold(w.state, c); changed {
		w.journal.Folded(w.key, w.state, next)
		w.state = next
	}
}

// start begins a pod and waits for that long; its container runs after 270 ms.
func (w *world) start(wait time.Duration) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "uid-1", Name: "web", Namespace: "shop"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}}}
	w.fold(pod.SpecSet{Spec: &pod.Spec{Pod: p, Source: pod.SourceFile, Seen: time.Now()}})
	w.want(w.podGraph("0"))
	time.Sleep(wait)
	synctest.Wait()
}

func (w *world) podGraph(attempt string) *dag.Graph[int] {
	g := &dag.Graph[int]{}
	key := func(s string) dag.Key { return dag.Key{Do: s, In: 1} }
	admit := g.Add(dag.Node[int]{ID: id("admit", ""), Key: key("admit"), Run: w.work(2*ms, "")})
	volume := g.Add(dag.Node[int]{ID: id("volume", "data"), Key: key("mount"), Need: []dag.ID{admit}, Run: w.work(30*ms, "")})
	other := g.Add(dag.Node[int]{ID: id("image", "proxy:1"), Key: key("pull proxy:1"), Class: "image", Run: w.work(50*ms, "PullImage")})
	image := g.Add(dag.Node[int]{ID: id("image", "web:1"), Key: key("pull web:1"), Class: "image", Run: w.pull})
	sandbox := g.Add(dag.Node[int]{ID: id("sandbox", ""), Key: key("run"), Need: []dag.ID{admit}, Run: w.work(80*ms, "RunPodSandbox")})
	g.Add(dag.Node[int]{ID: id("container", "web"), Key: key("start attempt " + attempt), Need: []dag.ID{volume, other, image, sandbox}, Run: w.work(20*ms, "CreateContainer", "StartContainer")})
	return g
}

// work makes calls of d each, or sleeps.
func (w *world) work(d time.Duration, methods ...string) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		for _, m := range methods {
			if err := w.call(ctx, m, d, nil); err != nil {
				return 0, err
			}
		}
		return 0, nil
	}
}

func (w *world) call(ctx context.Context, method string, d time.Duration, err error) error {
	done := func(error) {}
	if method != "" {
		ctx, done = w.calls.Call(ctx, method)
		md, _ := metadata.FromOutgoingContext(ctx)
		w.mu.Lock()
		w.parents = append(w.parents, append(md.Get("traceparent"), "")[0])
		w.mu.Unlock()
	}
	time.Sleep(d)
	done(err)
	return err
}

// pull fails once.
func (w *world) pull(ctx context.Context) (int, error) {
	var err error
	w.mu.Lock()
	if w.pulls++; w.pulls == 1 {
		err = errors.New("connection refused")
	}
	w.mu.Unlock()
	if err = w.call(ctx, "PullImage", 40*ms, err); err != nil {
		return 0, pod.WithReason("ErrImagePull", err)
	}
	return 0, nil
}

// byName returns the spans of that name, in order of time.
func byName(spans tracetest.SpanStubs, name string) (out tracetest.SpanStubs) {
	for _, s := range spans {
		if s.Name == name {
			out = append(out, s)
		}
	}
	return out
}

func attributesOf(s tracetest.SpanStub) map[string]string {
	out := map[string]string{}
	for _, a := range s.Attributes {
		out[string(a.Key)] = a.Value.String()
	}
	return out
}

var _ sdktrace.SpanExporter = keep{}
