package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Pipeline observes events and steps.
type Pipeline struct {
	events *prometheus.CounterVec
	step   prometheus.Observer
	wait   prometheus.Observer
}

// NewPipeline registers the metrics of the pipeline and returns their
// observer. dirty is asked at each scrape for the number of keys that wait for
// their step; nil leaves that out.
func NewPipeline(r prometheus.Registerer, dirty func() int) (*Pipeline, error) {
	buckets := prometheus.ExponentialBuckets(10e-6, 4, 10) // 10 µs to 2.6 s
	step := histogram("flowlet_pipeline_step_seconds", "Time that a step of one key took.", buckets)
	wait := histogram("flowlet_pipeline_wait_seconds", "Time from an event to the step that looked at it.", buckets)
	p := &Pipeline{
		events: counter("flowlet_pipeline_events_total", "Events by source.", "source"),
		step:   step.WithLabelValues(), wait: wait.WithLabelValues(),
	}
	all := []prometheus.Collector{p.events, step, wait}
	if dirty != nil {
		all = append(all, prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: "flowlet_pipeline_dirty", Help: "Keys that wait for their step."},
			func() float64 { return float64(dirty()) }))
	}
	return p, register(r, all...)
}

// Event counts an event of a source.
func (p *Pipeline) Event(source string) { p.events.WithLabelValues(source).Inc() }

// Stepped tells of a step that took d, after its key had been dirty for wait.
func (p *Pipeline) Stepped(d, wait time.Duration) {
	p.step.Observe(d.Seconds())
	p.wait.Observe(wait.Seconds())
}
