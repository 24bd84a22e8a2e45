// Package crisim is a container runtime without containers: a gRPC server of the CRI runtime and image services whose
// sandboxes, containers and images exist in memory only.
//
// It keeps to the rules of containerd 2 (names are reserved, a container starts once, stopping is idempotent, every
// change is an event) and is held to them by the contract suite in cri/critest, which real runtimes pass too.
// On top of that it can be told to be slow, to fail, to hang, to lose replies, to garble its events and to restart.
//
// Time is the standard library's, so everything runs in virtual time inside a testing/synctest bubble:
//
//	sim := crisim.New(crisim.Config{})
//	go sim.Run(ctx)
//	conn := sim.Conn()
//	defer conn.Close()
//	client := cri.New(conn)
//
// What a container does is written in an annotation of its pod (Annotation); see docs/sim.md.
package crisim
