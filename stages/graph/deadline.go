package graph

import (
	"context"
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// deadlineMessage is the kubelet's (v1.37.2).
const deadlineMessage = "Pod was active on the node longer than the specified deadline"

// activeDeadline ends a pod that its spec gives so much time only, counted from
// the start time of its status on, over restarts of the agent. Nothing needs
// it; what makes something comes after it, so that nothing is made of a pod
// whose time was over before it was looked at.
func (b *builder) activeDeadline() []dag.ID {
	seconds := b.s.Pod().Spec.ActiveDeadlineSeconds
	if seconds == nil {
		return nil
	}
	n := dag.Node[pod.Facts]{ID: dag.ID{Kind: KindDeadline}}
	if b.s.StartTime.IsZero() {
		return []dag.ID{b.node(n, nil)}
	}
	until := b.s.StartTime.Add(time.Duration(*seconds) * time.Second)
	n.Key = b.life().num(uint64(until.UnixNano())).key("end the pod: its active deadline is over")
	n.Hold = dag.Hold{Until: until, Why: "active deadline of " + (time.Duration(*seconds) * time.Second).String(), OnTime: true}
	return []dag.ID{b.node(n, func(context.Context) (pod.Facts, error) {
		return pod.Facts{pod.Judged{Verdict: pod.Verdict{Reason: pod.ReasonDeadlineExceeded, Message: deadlineMessage, At: time.Now()}}}, nil
	})}
}
