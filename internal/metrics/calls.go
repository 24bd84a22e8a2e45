package metrics

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"
)

// Calls observes the client of the container runtime. It fits cri.Observer.
type Calls struct {
	total    *prometheus.CounterVec
	errors   *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewCalls registers the metrics of runtime calls and returns their observer.
func NewCalls(r prometheus.Registerer) (*Calls, error) {
	c := &Calls{
		total:  counter("kubelet_runtime_operations_total", "Cumulative number of runtime operations by operation type.", "operation_type"),
		errors: counter("kubelet_runtime_operations_errors_total", "Cumulative number of runtime operation errors by operation type.", "operation_type"),
		duration: histogram("kubelet_runtime_operations_duration_seconds", "Duration in seconds of runtime operations by operation type.",
			prometheus.ExponentialBuckets(.005, 2.5, 14), "operation_type"),
	}
	return c, register(r, c.total, c.errors, c.duration)
}

// Call is told about a call before it is sent; done when it has ended.
func (c *Calls) Call(ctx context.Context, method string) (_ context.Context, done func(error)) {
	op, began := operation(method), time.Now()
	c.total.WithLabelValues(op).Inc()
	return ctx, func(err error) {
		c.duration.WithLabelValues(op).Observe(time.Since(began).Seconds())
		if err != nil {
			c.errors.WithLabelValues(op).Inc()
		}
	}
}

// operation returns the kubelet's word for a method: the method in snake case,
// but for some.
func operation(method string) string {
	switch method {
	case "UpdateContainerResources":
		return "update_container"
	case "ReopenContainerLog":
		return "reopen_container_log"
	case "GetContainerEvents":
		return "get_container_events"
	}
	method = strings.ReplaceAll(method, "PodSandbox", "Podsandbox") // one word there
	var b strings.Builder
	for i, r := range method {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
