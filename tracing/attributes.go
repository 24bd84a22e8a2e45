package tracing

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/journal"
)

// podAttributes are on every span of a trace (OpenTelemetry's semantic
// conventions for Kubernetes).
func podAttributes(p journal.Pod) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("k8s.namespace.name", p.Namespace),
		attribute.String("k8s.pod.name", p.Name),
		attribute.String("k8s.pod.uid", p.UID),
	}
}

func stageAttributes(a *attempt) []attribute.KeyValue {
	last := a.last()
	outcome := last.Outcome
	switch {
	case !a.ran() && outcome == "":
		outcome = "not run"
	case outcome == "":
		outcome = "unfinished"
	}
	attrs := []attribute.KeyValue{
		attribute.String("flowlet.stage.kind", a.id.Kind), attribute.String("flowlet.task", last.Do),
		attribute.Int("flowlet.attempt", last.Attempt), attribute.String("flowlet.outcome", outcome), attribute.String("flowlet.class", last.Class),
	}
	if key := instanceOf(a.id.Kind); a.id.Of != "" {
		attrs = append(attrs, attribute.String(key, a.id.Of))
	}
	if last.Reason != "" {
		attrs = append(attrs, attribute.String("error.type", last.Reason))
	}
	if a.ran() && a.run.Why != "" { // several pods share one run: "joined …"
		attrs = append(attrs, attribute.String("flowlet.shared", a.run.Why))
	}
	return attrs
}

// instanceOf returns the attribute that the instance of a stage is told by.
func instanceOf(kind string) string {
	switch kind {
	case "container", "init", "ephemeral", "stop", "prestop", "probe", "resize", "inputs":
		return "container.name"
	case "image":
		return "container.image.name"
	case "volume", "volume.unmount":
		return "k8s.volume.name"
	default:
		return "flowlet.stage.of"
	}
}

func waitName(state string) string {
	switch state {
	case dag.Held.String():
		return "hold"
	case dag.Queued.String():
		return "queue"
	case dag.Failed.String():
		return "back-off"
	default:
		return "wait"
	}
}

func waitAttributes(w explain.Span) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attribute.String("flowlet.stage.kind", w.Kind)}
	switch w.State {
	case dag.Queued.String():
		attrs = append(attrs, attribute.String("flowlet.class", w.Class))
	case dag.Failed.String():
		attrs = append(attrs, attribute.String("flowlet.error", w.Error))
	case dag.Held.String():
		attrs = append(attrs, attribute.String("flowlet.why", w.Why))
	default:
		attrs = append(attrs, attribute.StringSlice("flowlet.on", w.On))
	}
	return attrs
}
