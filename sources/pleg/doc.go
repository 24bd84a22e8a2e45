// Package pleg is the container runtime as a source: what it has of every
// pod, and whether it is ready.
//
// The event stream comes first; lists are the net below it, slow while the
// stream is open and every second without it. A list row says in which state
// an object is; the rest is asked for object by object, and only where it is
// not known yet.
package pleg
