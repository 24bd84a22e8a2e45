package crisim

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// op is one call: what it is about, what it claims on arrival, and what it does.
type op[Resp any] struct {
	target  Target
	slot    bool                                // holds one of Config.Slots while it works
	extra   time.Duration                       // latency on top of the method's
	prepare func() error                        // on arrival, with r.mu held; optional
	abort   func(error)                         // undoes prepare when effect fails or is not reached, with r.mu held; optional
	effect  func(context.Context) (Resp, error) // takes r.mu itself
	made    func(Resp) string                   // ID of what was made, for the call log; optional
}

// serve runs one call with everything around it: call log, faults, slots and latency.
func serve[Resp any](ctx context.Context, r *Runtime, o op[Resp]) (Resp, error) {
	call := r.calls.begin(o.target)
	resp, err := attempt(ctx, r, o)
	object := ""
	if err == nil && o.made != nil {
		object = o.made(resp)
	}
	r.calls.end(call, object, err)
	return resp, err
}

func attempt[Resp any](ctx context.Context, r *Runtime, o op[Resp]) (resp Resp, err error) {
	if r.gate.isDown() {
		return resp, errDown
	}
	do := r.faults.match(o.target)
	if do.late > 0 {
		return later(ctx, r, o, do.late)
	}
	if err := r.claim(o.prepare); err != nil {
		return resp, err
	}
	if err := r.work(ctx, o.target.Method, o.slot, do, o.extra); err != nil {
		r.unclaim(o.abort, err)
		return resp, err
	}
	resp, err = o.effect(ctx)
	if err != nil {
		r.unclaim(o.abort, err)
		return resp, err
	}
	if err := sleep(ctx, do.slowReply); err != nil {
		return resp, err
	}
	return resp, do.failAfter
}

func (r *Runtime) claim(prepare func() error) error {
	if prepare == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return prepare()
}

func (r *Runtime) unclaim(abort func(error), err error) {
	if abort == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	abort(err)
}

// work is the time that passes between arrival and effect, and the faults that prevent the effect.
func (r *Runtime) work(ctx context.Context, method string, slot bool, do Action, extra time.Duration) error {
	if slot && r.slots != nil {
		if err := acquire(ctx, r.slots); err != nil {
			return err
		}
		defer func() { <-r.slots }()
	}
	if err := sleep(ctx, r.latency(method)+do.slow+extra); err != nil {
		return err
	}
	if d := r.cfg.Serial[method]; d > 0 {
		if err := acquire(ctx, r.serial); err != nil {
			return err
		}
		defer func() { <-r.serial }()
		if err := sleep(ctx, d); err != nil {
			return err
		}
	}
	if do.hang != nil {
		select {
		case <-do.hang:
		case <-ctx.Done():
			return ended(ctx)
		}
	}
	return do.fail
}

func (r *Runtime) latency(method string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.latencies[method]; f != nil {
		return f(r.rng)
	}
	return 0
}

// later lets the effect happen after d, whatever becomes of the caller meanwhile.
func later[Resp any](ctx context.Context, r *Runtime, o op[Resp], d time.Duration) (resp Resp, err error) {
	type result struct {
		resp Resp
		err  error
	}
	if err := r.claim(o.prepare); err != nil {
		return resp, err
	}
	done := make(chan result, 1) // capacity 1: nobody may be there to receive
	detached := context.WithoutCancel(ctx)
	r.mu.Lock()
	r.after(d, func() {
		resp, err := o.effect(detached)
		if err != nil {
			r.unclaim(o.abort, err)
		}
		done <- result{resp, err}
	})
	r.mu.Unlock()
	select {
	case got := <-done:
		return got.resp, got.err
	case <-ctx.Done():
		return resp, ended(ctx)
	}
}

func acquire(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

// sleep waits d, or less when ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

var errDown = status.Error(codes.Unavailable, "container runtime is down")

func ended(ctx context.Context) error { return status.FromContextError(ctx.Err()).Err() }

func isContextEnd(err error) bool {
	c := status.Code(err)
	return c == codes.Canceled || c == codes.DeadlineExceeded
}

func notFound(format string, args ...any) error {
	return status.Error(codes.NotFound, fmt.Sprintf(format, args...)+": not found")
}
