// Package bench measures a node agent against a floor: a bare loop that makes
// the same calls to the container runtime. It holds the workloads, the floor,
// the statistics and the report; the agent comes in as a [System].
//
// Nothing is left behind: whatever way a measurement ends, the sandboxes of
// the bench's own namespace are removed from the runtime.
package bench
