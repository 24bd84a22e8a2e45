// Package status makes the status of a pod from its facts and memo, in the
// words that users, controllers and dashboards know, and keeps the pod's
// Kubernetes events on the node.
//
// [Compute] runs at every step of every pod: it is pure and spares memory.
package status
