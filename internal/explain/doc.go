// Package explain answers questions about a pod from its graph and memo: why
// it is not further (Why), what its graph looks like (Draw), what a change
// would do (PlanOf), and where the time of its start went (Spans,
// CriticalPath, Waterfall).
//
// All functions are pure. Reports are values that travel as JSON with a
// schema name and version, and have a Text method that renders them for a
// terminal of 80 columns.
package explain
