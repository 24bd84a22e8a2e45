// Package sandbox does the work of the sandbox stages: it writes down what a
// pod asks of its sandbox and makes, stops and removes sandboxes. When that is
// to be done is decided elsewhere.
package sandbox
