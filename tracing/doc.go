// Package tracing turns the episodes of the journal into OpenTelemetry traces
// and sends them to a collector, writes them to files, or both.
//
// Every episode of a pod (its start, the restart of a container, its end) is
// one trace with one root. The IDs of traces, roots and stages follow from the
// pod's UID, its incarnation and the times of its stages, so a start that an
// agent began and another finished is one trace. Spans are made when an
// episode is over, from what the journal has; nothing but the trace context of
// a call to the runtime is made while a stage runs. docs/tracing.md describes
// the model.
//
// No other package imports OpenTelemetry.
package tracing
