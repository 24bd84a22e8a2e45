package cri

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// skew remembers which streaming lists this connection's runtime lacks, so that the question is asked once.
type skew struct{ sandboxes, containers, images atomic.Bool }

func (s *skew) forget() {
	s.sandboxes.Store(false)
	s.containers.Store(false)
	s.images.Store(false)
}

// ListPodSandbox lists the sandboxes that match filter; nil means all, in no particular order,
// in parts where the runtime can send them neither as a stream nor in one message.
func (c *Client) ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	narrow := filter.GetId() != "" || len(filter.GetLabelSelector()) > 0
	if !narrow && !c.skew.sandboxes.Load() {
		d := call{method: "StreamPodSandboxes", timeout: c.timeouts.Call}
		items, err := collect(ctx, c, d, c.runtime.StreamPodSandboxes,
			&runtimeapi.StreamPodSandboxesRequest{Filter: filter}, (*runtimeapi.StreamPodSandboxesResponse).GetPodSandboxes)
		if !IsUnimplemented(err) {
			return items, err
		}
		c.skew.sandboxes.Store(true)
	}
	list, err := c.unarySandboxes(ctx, filter)
	if filter == nil && tooLarge(err) {
		return c.sandboxParts(ctx)
	}
	return list, err
}

func (c *Client) unarySandboxes(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	d := call{method: "ListPodSandbox", timeout: c.timeouts.Call}
	resp, err := invoke(ctx, c, d, c.runtime.ListPodSandbox, &runtimeapi.ListPodSandboxRequest{Filter: filter})
	return resp.GetItems(), err
}

// ListContainers lists the containers that match filter; nil means all, in no particular order,
// in parts where the runtime can send them neither as a stream nor in one message.
func (c *Client) ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	narrow := filter.GetId() != "" || filter.GetPodSandboxId() != "" || len(filter.GetLabelSelector()) > 0
	if !narrow && !c.skew.containers.Load() {
		d := call{method: "StreamContainers", timeout: c.timeouts.Call}
		items, err := collect(ctx, c, d, c.runtime.StreamContainers,
			&runtimeapi.StreamContainersRequest{Filter: filter}, (*runtimeapi.StreamContainersResponse).GetContainers)
		if !IsUnimplemented(err) {
			return items, err
		}
		c.skew.containers.Store(true)
	}
	list, err := c.unaryContainers(ctx, filter)
	if filter == nil && tooLarge(err) {
		return c.containerParts(ctx)
	}
	return list, err
}

func (c *Client) unaryContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	d := call{method: "ListContainers", timeout: c.timeouts.Call}
	resp, err := invoke(ctx, c, d, c.runtime.ListContainers, &runtimeapi.ListContainersRequest{Filter: filter})
	return resp.GetContainers(), err
}

// ListImages lists all images of the runtime, in no particular order.
func (c *Client) ListImages(ctx context.Context) ([]*runtimeapi.Image, error) {
	if !c.skew.images.Load() {
		d := call{method: "StreamImages", timeout: c.timeouts.Call}
		items, err := collect(ctx, c, d, c.images.StreamImages,
			&runtimeapi.StreamImagesRequest{}, (*runtimeapi.StreamImagesResponse).GetImages)
		if !IsUnimplemented(err) {
			return items, err
		}
		c.skew.images.Store(true)
	}
	d := call{method: "ListImages", timeout: c.timeouts.Call}
	resp, err := invoke(ctx, c, d, c.images.ListImages, &runtimeapi.ListImagesRequest{})
	return resp.GetImages(), err
}

// opener is the shape of every server-streaming method of the generated stubs.
type opener[Req, Resp any] func(context.Context, Req, ...grpc.CallOption) (grpc.ServerStreamingClient[Resp], error)

// collect reads a streaming list to its end: all of it, or an error and nothing.
func collect[Req, Resp, Item any](ctx context.Context, c *Client, d call, open opener[Req, Resp], req Req, items func(*Resp) []Item) ([]Item, error) {
	var all []Item
	err := drain(ctx, c, d, open, req, func(r *Resp) { all = append(all, items(r)...) })
	if err != nil {
		return nil, err
	}
	return all, nil
}

// drain hands every message of a stream to emit, until the runtime ends it (nil) or it breaks.
func drain[Req, Resp any](ctx context.Context, c *Client, d call, open opener[Req, Resp], req Req, emit func(*Resp)) error {
	ctx, done := c.observer.Call(ctx, d.method)
	ctx, cancel := d.bound(ctx)
	defer cancel()
	sent, err := read(ctx, open, req, emit)
	if err != nil {
		err = c.fail(ctx, d, err, sent)
	}
	done(err)
	return err
}

func read[Req, Resp any](ctx context.Context, open opener[Req, Resp], req Req, emit func(*Resp)) (sent bool, _ error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil) // frees the stream when emit panics or the reader returns early
	stream, err := open(ctx, req)
	if err != nil {
		return false, err
	}
	for {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return true, nil
		case err != nil:
			return true, err
		}
		emit(m)
	}
}
