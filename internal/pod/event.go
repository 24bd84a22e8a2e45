package pod

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// Event is a Kubernetes event about a pod, as the ecosystem words it.
type Event struct {
	Type      string // Normal or Warning
	Reason    string
	Message   string
	FieldPath string // spec.containers{web}, or empty for the pod itself
	First     time.Time
	Last      time.Time
	Count     int
}

// Recorder takes Kubernetes events. Event never blocks and may be called
// concurrently.
type Recorder interface {
	Event(p *v1.Pod, fieldPath, eventType, reason, message string)
}
