package pleg

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

// healthyStream is how long a stream has to last for the next one to be opened
// without a longer delay.
const healthyStream = time.Minute

// streams keeps the event stream open. A runtime without events is asked again
// when it was away: another version may be back.
func (r *run) streams(ctx context.Context) {
	failures := 0
	for {
		opened := time.Now()
		r.health.opening(opened)
		err := r.cfg.Runtime.GetContainerEvents(ctx, func(ev *runtimeapi.ContainerEventResponse) { r.event(ctx, ev, opened) })
		if ctx.Err() != nil {
			return
		}
		r.health.noStream(reason(err))
		wake(r.soon)
		if time.Since(opened) >= healthyStream {
			failures = 0
		}
		failures++
		delay := streamDelay(failures)
		if cri.IsUnimplemented(err) {
			delay = unsupportedDelay
		}
		if !pause(ctx, delay, r.back) {
			return
		}
	}
}

// unsupportedDelay is after how long a runtime without events is asked again
// though it was never seen to be away.
const unsupportedDelay = time.Hour

func reason(err error) string {
	if err == nil {
		return "the runtime ended the stream"
	}
	return err.Error()
}

// event takes one event; it does not block. What it shows is believed when it
// shows all it should and is no repetition from before the stream was opened.
// Everything else, an absence above all, only asks for a look at the pod.
func (r *run) event(ctx context.Context, ev *runtimeapi.ContainerEventResponse, opened time.Time) {
	sb := ev.GetPodSandboxStatus()
	uid := crifact.Identity(sb.GetLabels(), nil).UID
	at := time.Unix(0, ev.GetCreatedAt())
	switch {
	case sb == nil:
		wake(r.soon) // of which pod it is nobody knows
	case uid == "": // of no pod of ours
	case ev.GetContainerEventType() == runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT, at.Before(opened), !complete(ev):
		r.lookAt(ctx, uid)
	default:
		r.pod(uid, r.observed(ev, at))
	}
}

// complete reports whether an event shows the object that it is about, in a
// state that is known.
func complete(ev *runtimeapi.ContainerEventResponse) bool {
	shown := ev.GetContainerId() == ev.GetPodSandboxStatus().GetId()
	for _, c := range ev.GetContainersStatuses() {
		if c.GetState() == runtimeapi.ContainerState_CONTAINER_UNKNOWN {
			return false
		}
		shown = shown || c.GetId() == ev.GetContainerId()
	}
	return shown
}

func (s *Source) observed(ev *runtimeapi.ContainerEventResponse, at time.Time) pod.Observed {
	sb := ev.GetPodSandboxStatus()
	o := pod.Observed{
		Partial: true, Began: at, Ended: at,
		Identity:   crifact.Identity(sb.GetLabels(), sb.GetAnnotations()),
		Sandboxes:  []pod.Sandbox{crifact.SandboxStatus(sb)},
		Containers: make([]pod.Container, 0, len(ev.GetContainersStatuses())),
	}
	for _, st := range ev.GetContainersStatuses() {
		c := crifact.ContainerStatus(st)
		c.SandboxID = sb.GetId()
		s.finish(&c, st)
		o.Containers = append(o.Containers, c)
	}
	return o
}

// lookAt has a pod looked at afresh.
func (r *run) lookAt(ctx context.Context, uid types.UID) {
	ok := r.reader.hint(uid, func() {
		o, err := r.look(ctx, uid)
		known := r.cfg.State(pod.KeyOf(uid)) != nil
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			wake(r.soon)
		}
		if o != nil && (known || len(o.Sandboxes)+len(o.Containers) > 0) {
			r.pod(uid, *o)
		}
	})
	if !ok {
		wake(r.soon) // the read that waits may have begun before
	}
}
