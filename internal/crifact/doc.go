// Package crifact translates between the container runtime's messages and the
// words of package pod: what a list or a status says becomes facts, what a pod
// asks for becomes the parts of a request that sandboxes and containers share
// and the values that its containers, files and probes are shown,
// and failed calls are told apart by what they mean. Its functions are pure
// and may be called concurrently; they know no client and do no I/O.
package crifact
