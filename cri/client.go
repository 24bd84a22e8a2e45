package cri

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Timeouts bound the calls of a Client. A zero field means its default.
type Timeouts struct {
	// Call is the deadline of every call without one of its own (default 2 minutes, as runtimeRequestTimeout of the
	// kubelet). For StopContainer and ExecSync it is the margin on top of the grace period or the command's timeout.
	Call time.Duration
	// Sandbox is the deadline of RunPodSandbox (default 4 minutes: the network set-up is part of it).
	Sandbox time.Duration
}

// DefaultTimeouts returns the kubelet's numbers: 2 minutes per call, 4 for a sandbox.
func DefaultTimeouts() Timeouts { return Timeouts{Call: 2 * time.Minute, Sandbox: 4 * time.Minute} }

// Observer sees every call of a Client; tracing and metrics are observers. It is called concurrently and must not block.
type Observer interface {
	// Call is told about a call before it is sent. method is the name of the RPC without its service, for example
	// "RunPodSandbox". The returned context is the one the call is made with (a span, outgoing metadata). done is called
	// exactly once with the result as the caller sees it, for a stream when it ends; it is never nil.
	Call(ctx context.Context, method string) (_ context.Context, done func(err error))
}

// Client calls a container runtime. Its methods may be called concurrently.
//
// Every method returns an *Error, or nil. Messages are passed and returned as they are on the wire, never nil without
// an error unless a method says so, and are not kept.
type Client struct {
	runtime  runtimeapi.RuntimeServiceClient
	images   runtimeapi.ImageServiceClient
	timeouts Timeouts
	observer Observer
	skew     skew
	close    func() error
}

// Option changes a Client at construction.
type Option func(*settings)

type settings struct {
	timeouts Timeouts
	observer Observer
	dial     []grpc.DialOption
}

// WithTimeouts replaces the deadlines; zero fields keep their defaults.
func WithTimeouts(t Timeouts) Option {
	return func(s *settings) {
		if t.Call > 0 {
			s.timeouts.Call = t.Call
		}
		if t.Sandbox > 0 {
			s.timeouts.Sandbox = t.Sandbox
		}
	}
}

// WithObserver sets the one observer of the client.
func WithObserver(o Observer) Option {
	return func(s *settings) {
		if o != nil {
			s.observer = o
		}
	}
}

// WithDialOptions adds gRPC options to Dial, for example a stats handler that propagates traces. New ignores it.
func WithDialOptions(o ...grpc.DialOption) Option {
	return func(s *settings) { s.dial = append(s.dial, o...) }
}

func newSettings(opts []Option) settings {
	s := settings{timeouts: DefaultTimeouts(), observer: silent{}}
	for _, o := range opts {
		o(&s)
	}
	return s
}

// New returns a client over a connection that the caller owns and closes.
func New(conn grpc.ClientConnInterface, opts ...Option) *Client {
	return newClient(conn, newSettings(opts))
}

func newClient(conn grpc.ClientConnInterface, s settings) *Client {
	return &Client{
		runtime:  runtimeapi.NewRuntimeServiceClient(conn),
		images:   runtimeapi.NewImageServiceClient(conn),
		timeouts: s.timeouts,
		observer: s.observer,
		close:    func() error { return nil },
	}
}

// Close closes the connection that Dial made; after New it does nothing. Calls in flight fail.
func (c *Client) Close() error { return c.close() }

type silent struct{}

func (silent) Call(ctx context.Context, _ string) (context.Context, func(error)) {
	return ctx, func(error) {}
}

// call describes one unary call: what is asked, of which object, and for how long.
type call struct {
	method  string
	object  string
	timeout time.Duration // 0: only the caller's
	gone    bool          // NotFound is success
}

// unary is the shape of every unary method of the generated stubs.
type unary[Req, Resp any] func(context.Context, Req, ...grpc.CallOption) (Resp, error)

// invoke makes one unary call: observer, deadline, error.
func invoke[Req, Resp any](ctx context.Context, c *Client, d call, rpc unary[Req, Resp], req Req) (Resp, error) {
	ctx, done := c.observer.Call(ctx, d.method)
	ctx, cancel := d.bound(ctx)
	defer cancel()
	var reached peer.Peer
	resp, err := rpc(ctx, req, grpc.Peer(&reached))
	if err != nil {
		err = c.fail(ctx, d, err, reached.Addr != nil)
	}
	done(err)
	return resp, err
}

// bound applies the call's deadline; an earlier one of the caller stays.
func (d call) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, d.timeout, fmt.Errorf("%w within %s", errNoAnswer, d.timeout))
}

// fail turns what gRPC returned into the error of the call, or into nil where the interface calls it success.
func (c *Client) fail(ctx context.Context, d call, err error, sent bool) error {
	e := &Error{Method: d.method, Object: d.object, Err: err, Sent: sent}
	if isContextCode(codeOf(err)) {
		e.Cause = cause(ctx)
	}
	switch e.Class() {
	case NotFound:
		if d.gone {
			return nil
		}
	case Unavailable:
		c.skew.forget() // another version may answer the next connection
	}
	return e
}

// cause is why ctx ended, nil when it did not. The runtime knows the deadline too and may answer a moment before ctx
// notices that it is over.
func cause(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
	return context.Cause(ctx)
}
