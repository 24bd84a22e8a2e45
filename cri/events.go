package cri

import (
	"context"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// GetContainerEvents opens the runtime's stream of container events and calls emit for each, in order, from the calling
// goroutine. It returns nil when the runtime ends the stream and an error otherwise, in particular when ctx ends;
// ErrUnsupported when the runtime has no events. It has no deadline but the caller's.
//
// emit must not block and must not call the runtime: the runtime sends to all its readers in turn, and containerd stalls
// as a whole behind one that is slow. Fold the event into memory and return.
//
// Events are hints. A stream says nothing of what happened before it was open, and a runtime may repeat, delay or drop
// events; after opening one, list.
func (c *Client) GetContainerEvents(ctx context.Context, emit func(*runtimeapi.ContainerEventResponse)) error {
	d := call{method: "GetContainerEvents"}
	return drain(ctx, c, d, c.runtime.GetContainerEvents, &runtimeapi.GetEventsRequest{}, emit)
}
