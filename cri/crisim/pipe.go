package crisim

import (
	"context"
	"io"
	"sync"

	"google.golang.org/grpc/metadata"
)

// pipe is one stream of a Direct connection: one request, then messages of the server until it is done.
type pipe struct {
	ctx      context.Context //nolint:containedctx // the interface of gRPC's streams wants it
	request  any
	start    func()
	once     sync.Once
	messages chan any      // not buffered: what was sent has been received
	done     chan struct{} // closed after err is set
	err      error
}

// clientPipe and serverPipe are its ends.
type (
	clientPipe struct{ *pipe }
	serverPipe struct{ *pipe }
)

// Context implements both ends.
func (p *pipe) Context() context.Context { return p.ctx }

// SendMsg takes the request and starts the handler.
func (c clientPipe) SendMsg(m any) error {
	c.once.Do(func() {
		c.request = m
		c.start()
	})
	return nil
}

// RecvMsg waits for the next message of the server.
func (c clientPipe) RecvMsg(m any) error {
	select {
	case got := <-c.messages:
		return copyMessage(m, got)
	case <-c.done:
		if c.err == nil {
			return io.EOF
		}
		return direct(c.ctx, c.err)
	}
}

// SendMsg hands a message to the client, which copies it.
func (s serverPipe) SendMsg(m any) error {
	select {
	case s.messages <- m:
		return nil
	case <-s.ctx.Done():
		return ended(s.ctx)
	}
}

// RecvMsg gives the request.
func (s serverPipe) RecvMsg(m any) error { return copyMessage(m, s.request) }

// There are no headers and trailers.
func (clientPipe) Header() (metadata.MD, error) { return metadata.MD{}, nil }
func (clientPipe) Trailer() metadata.MD         { return metadata.MD{} }
func (clientPipe) CloseSend() error             { return nil }
func (serverPipe) SetHeader(metadata.MD) error  { return nil }
func (serverPipe) SendHeader(metadata.MD) error { return nil }
func (serverPipe) SetTrailer(metadata.MD)       {}
