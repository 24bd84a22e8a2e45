// Package scenarios tests the whole agent in virtual time: real wiring, engine,
// pipeline, manifest source and state files, over the simulated runtime. Each
// test tells one behaviour of a node. While it runs, the calls that reach the
// runtime are held to invariants that no situation excuses (see invariants).
package scenarios
