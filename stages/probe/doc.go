// Package probe checks containers as their probes say, and decides what the
// results mean.
//
// It has two halves. [Prober] runs one check: a command, an HTTP request, a
// connection or a gRPC health call. [Next] is pure: from what is known, the
// facts of a container and a result it says what the probe's verdict is and
// when the next check is due.
//
// Numbers and words are those of kubelet v1.37.2.
package probe
