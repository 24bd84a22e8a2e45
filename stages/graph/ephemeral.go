package graph

import (
	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// targetHold keeps an ephemeral container that is to see the processes of
// another one until that one runs.
func (b *builder) targetHold(p *plan, u *unit) dag.Hold {
	target := ""
	for i := range b.s.Pod().Spec.EphemeralContainers {
		if e := &b.s.Pod().Spec.EphemeralContainers[i]; e.Name == u.spec.Name {
			target = e.TargetContainerName
		}
	}
	if target == "" {
		return dag.Hold{}
	}
	if c, ok := b.s.NewestIn(target, p.sandbox.ID); p.usable && ok && c.Live() && c.State == pod.Running {
		return dag.Hold{}
	}
	return dag.Hold{Why: "its target, container " + target + ", does not run"}
}
