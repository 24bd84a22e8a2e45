// Package metrics are Prometheus observers of the engine, the pipeline, the
// runtime client and the relist. Where the kubelet has a metric its name,
// labels and buckets are used (kubelet v1.37.2), so that dashboards and alerts
// go on working; what only flowlet has begins with flowlet_.
//
// All metrics are registered in a registry that is handed in; there is no
// other state. Observers are safe for concurrent use and never block. No label
// has the name of a pod, a container or an image for its value.
package metrics
