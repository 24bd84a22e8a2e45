package metrics

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Stages observes the engine: how long stages run and queue, how they end,
// what is started. Create it with NewStages.
type Stages struct {
	duration  *prometheus.HistogramVec
	queued    *prometheus.HistogramVec
	depth     *prometheus.GaugeVec
	running   *prometheus.GaugeVec
	lost      *prometheus.GaugeVec
	pods      prometheus.Counter
	podErrors prometheus.Counter
	started   *prometheus.CounterVec
	failed    *prometheus.CounterVec
}

var _ dag.Observer[pod.Key] = (*Stages)(nil)

// NewStages registers the metrics of stages and returns their observer.
func NewStages(r prometheus.Registerer) (*Stages, error) {
	buckets := prometheus.ExponentialBuckets(0.001, 2.5, 15) // 1 ms to 6 minutes
	s := &Stages{
		duration: histogram("flowlet_stage_duration_seconds", "Time that runs of stages took, by outcome: ok, failed, cancelled, lost.", buckets, "kind", "outcome"),
		queued:   histogram("flowlet_stage_queue_seconds", "Time that stages waited in the queue of their class.", buckets, "class"),
		depth:    gauge("flowlet_stage_queue_depth", "Stages that wait in the queue of their class.", "class"),
		running:  gauge("flowlet_stage_running", "Stages that run.", "class"),
		lost:     gauge("flowlet_stage_lost", "Runs that passed their deadline and have not returned.", "class"),
		pods:     counter("kubelet_started_pods_total", "Cumulative number of pods started.").WithLabelValues(),
		podErrors: counter("kubelet_started_pods_errors_total",
			"Cumulative number of errors when starting pods.").WithLabelValues(),
		started: counter("kubelet_started_containers_total", "Cumulative number of containers started.", "container_type"),
		failed:  counter("kubelet_started_containers_errors_total", "Cumulative number of errors when starting containers.", "container_type", "code"),
	}
	return s, register(r, s.duration, s.queued, s.depth, s.running, s.lost, s.pods, s.podErrors, s.started, s.failed)
}

// containerType gives the kubelet's word for a stage that starts something.
func containerType(kind string) (string, bool) {
	switch kind {
	case "container":
		return "container", true
	case "init":
		return "init_container", true
	case "ephemeral":
		return "ephemeral_container", true
	case "sandbox":
		return "podsandbox", true
	default:
		return "", false
	}
}

// Moved implements dag.Observer.
func (s *Stages) Moved(_ pod.Key, id dag.ID, from, to dag.Entry) {
	s.count(from, -1)
	s.count(to, 1)
	switch from.State {
	case dag.Queued:
		if to.State == dag.Running {
			s.queued.WithLabelValues(family(from.Class)).Observe(to.Since.Sub(from.Since).Seconds())
		}
	case dag.Running:
		s.ended(id, from, to)
	default:
	}
}

// count adds n to the gauge of the entry's state.
func (s *Stages) count(e dag.Entry, n float64) {
	switch e.State {
	case dag.Queued:
		s.depth.WithLabelValues(family(e.Class)).Add(n)
	case dag.Running:
		s.running.WithLabelValues(family(e.Class)).Add(n)
	case dag.Lost:
		s.lost.WithLabelValues(family(e.Class)).Add(n)
	default:
	}
}

func (s *Stages) ended(id dag.ID, from, to dag.Entry) {
	end := to.Since
	if end.IsZero() { // forgotten
		end = time.Now()
	}
	s.duration.WithLabelValues(id.Kind, outcome(to)).Observe(end.Sub(from.Since).Seconds())
	kind, ok := containerType(id.Kind)
	if !ok {
		return
	}
	switch to.State {
	case dag.Done:
		s.started.WithLabelValues(kind).Inc()
		if id.Kind == "sandbox" {
			s.pods.Inc()
		}
	case dag.Failed:
		s.failed.WithLabelValues(kind, pod.ReasonOf(to.Err)).Inc()
		if id.Kind == "sandbox" {
			s.podErrors.Inc()
		}
	default:
	}
}

func outcome(to dag.Entry) string {
	switch to.State {
	case dag.Done:
		return "ok"
	case dag.Failed:
		return "failed"
	case dag.Lost:
		return "lost"
	default:
		return "cancelled"
	}
}

// Context implements dag.Observer.
func (s *Stages) Context(ctx context.Context, _ pod.Key, _ dag.ID) context.Context { return ctx }

// family is the part of a class before the first slash: what follows names a
// registry, and there is no end of them.
func family(class string) string {
	f, _, _ := strings.Cut(class, "/")
	return f
}
