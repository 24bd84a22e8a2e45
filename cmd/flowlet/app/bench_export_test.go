package app

import (
	"github.com/flowlet/flowlet/internal/bench"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages"
)

// DomainOf gives benchmarks the domain of an agent under test, to step it
// without the pipeline.
func DomainOf(s bench.System) *stages.Domain {
	a, _ := s.(*benchAgent)
	return a.agent.domain
}

// StateOf returns the state of a pod of an agent under test.
func StateOf(s bench.System, k pod.Key) *pod.State {
	a, _ := s.(*benchAgent)
	return a.agent.state(k)
}
