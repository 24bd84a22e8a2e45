package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Relist observes the looks at the whole runtime.
type Relist struct {
	duration prometheus.Observer
	interval prometheus.Observer
	lastSeen prometheus.Gauge
}

// NewRelist registers the metrics of relists and returns their observer.
func NewRelist(r prometheus.Registerer) (*Relist, error) {
	duration := histogram("kubelet_pleg_relist_duration_seconds", "Duration in seconds for relisting pods in PLEG.", prometheus.DefBuckets)
	interval := histogram("kubelet_pleg_relist_interval_seconds", "Interval in seconds between relisting in PLEG.", prometheus.DefBuckets)
	seen := gauge("kubelet_pleg_last_seen_seconds", "Timestamp in seconds when PLEG was last seen active.")
	return &Relist{duration: duration.WithLabelValues(), interval: interval.WithLabelValues(), lastSeen: seen.WithLabelValues()},
		register(r, duration, interval, seen)
}

// Relisted tells of a relist that ended now. previous is when the one before
// it began; zero at the first.
func (m *Relist) Relisted(began, previous time.Time) {
	m.duration.Observe(time.Since(began).Seconds())
	if !previous.IsZero() {
		m.interval.Observe(began.Sub(previous).Seconds())
	}
	m.lastSeen.Set(float64(time.Now().Unix()))
}
