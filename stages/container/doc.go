// Package container does the work of the container stages: it writes down
// what a container's spec asks of the runtime, and starts, stops and removes
// containers. When that is to be done is decided elsewhere.
package container
