package pleg

import (
	"context"
	"slices"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

// statuses asks the runtime about itself, again and again.
func (r *run) statuses(ctx context.Context) {
	var told *pod.RuntimeStatus
	for {
		now := r.status(ctx, told)
		if ctx.Err() != nil {
			return
		}
		if told == nil || !now.Equal(*told) {
			told = &now
			r.topic(TopicRuntime, now)
			r.topic(TopicNetwork, now)
		}
		if !pause(ctx, r.cfg.StatusEvery, r.ask) {
			return
		}
	}
}

// status returns what the runtime says about itself. While it does not answer,
// nothing new is known about its network.
func (r *run) status(ctx context.Context, told *pod.RuntimeStatus) pod.RuntimeStatus {
	ctx, cancel := context.WithTimeoutCause(ctx, r.cfg.CallTimeout, errSilent)
	defer cancel()
	resp, err := r.cfg.Runtime.Status(ctx)
	r.health.answered(err)
	var now pod.RuntimeStatus
	if err != nil {
		now.Reason, now.Message = "ContainerRuntimeUnreachable", err.Error()
		if told != nil {
			now.NetworkReady, now.Features = told.NetworkReady, told.Features
		}
	} else {
		now = statusOf(resp.GetStatus().GetConditions())
		now.Features = crifact.Features(resp)
	}
	now.Since = time.Now()
	if told != nil && told.Ready == now.Ready && told.NetworkReady == now.NetworkReady {
		now.Since = told.Since
	}
	return now
}

// statusOf needs both conditions to be there and true; the first that is not
// gives the reason.
func statusOf(conditions []*runtimeapi.RuntimeCondition) pod.RuntimeStatus {
	var now pod.RuntimeStatus
	for _, c := range [...]struct {
		name  string
		ready *bool
	}{{runtimeapi.RuntimeReady, &now.Ready}, {runtimeapi.NetworkReady, &now.NetworkReady}} {
		i := slices.IndexFunc(conditions, func(rc *runtimeapi.RuntimeCondition) bool { return rc.GetType() == c.name })
		switch {
		case i >= 0 && conditions[i].GetStatus():
			*c.ready = true
		case now.Reason != "":
		case i < 0:
			now.Reason, now.Message = "ConditionMissing", "the runtime says nothing about "+c.name
		default:
			now.Reason, now.Message = conditions[i].GetReason(), conditions[i].GetMessage()
		}
	}
	return now
}
