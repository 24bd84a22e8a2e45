package crisim

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

type event = runtimeapi.ContainerEventResponse

// EventFaults garble the event stream. The zero value does not.
type EventFaults struct {
	Match   func(*runtimeapi.ContainerEventResponse) bool // which events; nil: all
	Drop    bool                                          // they are never sent
	Repeat  int                                           // they are sent that many times more
	Delay   time.Duration                                 // they are sent that much later
	Shuffle time.Duration                                 // on top of Delay, each is late by a random time below this
}

// hub hands events to the readers, and keeps them for the next one while there is none. Guarded by Runtime.mu.
type hub struct {
	readers   map[*reader]struct{}
	kept      []*event
	retention time.Duration
	faults    EventFaults
}

// reader is one open stream. Its queue is not bounded: a slow reader costs memory, not the runtime's progress.
type reader struct {
	queue []*event
	wake  chan struct{} // capacity 1: there is something in the queue, or the stream is cut
	cut   error         // why the runtime ended the stream
	isCut bool
}

func newHub(retention time.Duration) hub {
	return hub{readers: map[*reader]struct{}{}, retention: retention}
}

// publish makes an event with the state of its pod as of now. r.mu is held.
func (r *Runtime) publish(kind runtimeapi.ContainerEventType, id string, b *sandbox) {
	h := &r.hub
	if r.cfg.NoEvents || (len(h.readers) == 0 && h.retention < 0) {
		return
	}
	e := &event{ContainerId: id, ContainerEventType: kind, CreatedAt: time.Now().UnixNano(), PodSandboxStatus: b.status()}
	for _, c := range b.members {
		e.ContainersStatuses = append(e.ContainersStatuses, c.status())
	}
	f := h.faults
	if f.Match != nil && !f.Match(e) {
		f = EventFaults{}
	}
	if f.Drop {
		return
	}
	for range 1 + f.Repeat {
		delay := f.Delay
		if f.Shuffle > 0 {
			delay += time.Duration(r.rng.Int64N(int64(f.Shuffle)))
		}
		if delay == 0 {
			h.deliver(e)
			continue
		}
		r.after(delay, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			h.deliver(e)
		})
	}
}

func (h *hub) deliver(e *event) {
	if len(h.readers) == 0 {
		h.keep(e)
		return
	}
	for rd := range h.readers {
		rd.queue = append(rd.queue, e)
		rd.poke()
	}
}

func (h *hub) keep(e *event) {
	if h.retention < 0 {
		return
	}
	h.kept = append(h.kept, e)
	oldest := time.Now().Add(-h.retention).UnixNano()
	stale := 0
	for stale < len(h.kept) && h.kept[stale].CreatedAt < oldest {
		stale++
	}
	h.kept = h.kept[stale:]
}

func (h *hub) open() *reader {
	rd := &reader{wake: make(chan struct{}, 1), queue: h.kept}
	h.kept = nil
	h.readers[rd] = struct{}{}
	rd.poke()
	return rd
}

// cutAll ends every stream; err nil is a proper end.
func (h *hub) cutAll(err error) {
	for rd := range h.readers {
		rd.cut, rd.isCut = err, true
		rd.poke()
	}
	clear(h.readers)
}

func (rd *reader) poke() {
	select {
	case rd.wake <- struct{}{}:
	default: // awake already
	}
}

// GetContainerEvents implements the CRI.
func (r *runtimeServer) GetContainerEvents(_ *runtimeapi.GetEventsRequest, stream runtimeapi.RuntimeService_GetContainerEventsServer) error {
	call := r.calls.begin(Target{Method: "GetContainerEvents"})
	err := r.streamEvents(stream)
	r.calls.end(call, "", err)
	return err
}

func (r *Runtime) streamEvents(stream runtimeapi.RuntimeService_GetContainerEventsServer) error {
	ctx := stream.Context()
	if r.cfg.NoEvents {
		return unimplemented("GetContainerEvents")
	}
	if r.gate.isDown() {
		return errDown
	}
	if err := r.work(ctx, "GetContainerEvents", false, r.faults.match(Target{Method: "GetContainerEvents"}), 0); err != nil {
		return err
	}
	r.mu.Lock()
	rd := r.hub.open()
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.hub.readers, rd)
	}()
	for {
		select {
		case <-ctx.Done():
			return ended(ctx)
		case <-rd.wake:
		}
		r.mu.Lock()
		batch, isCut, cut := rd.queue, rd.isCut, rd.cut
		rd.queue = nil
		r.mu.Unlock()
		if isCut {
			return cut
		}
		for _, e := range batch {
			if err := stream.Send(e); err != nil {
				return err
			}
		}
	}
}

func unimplemented(method string) error {
	return status.Errorf(codes.Unimplemented, "unknown method %s for service runtime.v1.RuntimeService", method)
}
