package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/journal"
)

// Starts observes the episodes of the journal: how long pods take to start,
// and what that time is spent on.
type Starts struct {
	running  prometheus.Observer
	sli      prometheus.Observer
	ready    prometheus.Observer
	critical *prometheus.HistogramVec
}

// startBuckets are the kubelet's for the start of a pod.
func startBuckets() []float64 {
	return []float64{0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}
}

// NewStarts registers the metrics of pod starts and returns their observer.
func NewStarts(r prometheus.Registerer) (*Starts, error) {
	running := histogram("kubelet_pod_start_duration_seconds",
		"Duration in seconds from the agent seeing a pod for the first time to the pod starting to run.", startBuckets())
	sli := histogram("kubelet_pod_start_sli_duration_seconds",
		"Duration in seconds to start a pod, excluding time to pull images and run init containers, from first sight to the pod starting to run.", startBuckets())
	ready := histogram("flowlet_pod_ready_seconds", "Duration in seconds from first sight of a pod until it was ready.", startBuckets())
	s := &Starts{
		running: running.WithLabelValues(), sli: sli.WithLabelValues(), ready: ready.WithLabelValues(),
		critical: histogram("flowlet_pod_start_critical_seconds",
			"Time on the critical path of pod starts by kind of stage; idle is the time in which no stage was busy.",
			prometheus.ExponentialBuckets(0.001, 2.5, 15), "kind"),
	}
	return s, register(r, running, sli, ready, s.critical)
}

// Ended takes an episode that is over; what is no start that came to be ready
// or succeeded is not counted.
func (s *Starts) Ended(c journal.Closed) {
	if c.Kind() != journal.Start {
		return
	}
	e := c.Episode()
	up := runningAt(&e)
	if up.IsZero() || e.Outcome != "ready" && e.Outcome != "succeeded" {
		return
	}
	w := explain.Window{From: e.Began, To: up}
	by := map[string]time.Duration{}
	for _, seg := range explain.CriticalPath(explain.Spans(e.Entries(), w), w) {
		by[kindOf(seg.Stage)] += seg.Duration()
	}
	for kind, d := range by {
		s.critical.WithLabelValues(kind).Observe(d.Seconds())
	}
	s.running.Observe(up.Sub(e.Began).Seconds())
	s.sli.Observe((up.Sub(e.Began) - by["image"] - by["init"]).Seconds())
	if e.Outcome == "ready" {
		s.ready.Observe(e.Ended.Sub(e.Began).Seconds())
	}
}

// runningAt returns when the last container was started; zero if none was. The
// answer to the call that started it may be later than the pod's start was over.
func runningAt(e *journal.Episode) (at time.Time) {
	for _, m := range e.Moves {
		if m.ID.Kind == "container" && m.Entry.State == dag.Done && !m.Gone && m.Entry.Attempt > 0 {
			at = m.At
		}
	}
	if !e.Ended.IsZero() && at.After(e.Ended) {
		at = e.Ended
	}
	return at
}

// kindOf returns the kind in kind[of]; no stage is idle.
func kindOf(stage string) string {
	if stage == "" {
		return "idle"
	}
	for i := range stage {
		if stage[i] == '[' {
			return stage[:i]
		}
	}
	return stage
}
