// Package explain answers questions about a pod from its graph and memo: why
// it is not further (Why), what its graph looks like (Draw), what a change
// would do (PlanOf), and where the time of its start went (Spans,
// CriticalPath, Waterfall).
//
// All functions are pure. Reports are values that travel as JSON and have a
// Text method that renders them for a terminal of 80 columns. Their JSON form
// is the struct with its tags, times are RFC 3339, and the field schema names
// what it is:
//
//	flowlet.dev/why/v1    Report
//	flowlet.dev/dag/v1    Graph
//	flowlet.dev/plan/v1   Plan
//	flowlet.dev/plans/v1  Plans
//	flowlet.dev/trace/v1  Trace
//
// A version changes when a field changes its meaning or goes away; readers
// ignore fields that they do not know.
package explain
