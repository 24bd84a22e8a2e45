package crisim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
)

// ServeStreams serves the streams behind Exec, Attach and PortForward on lis until ctx ends; it closes lis and returns
// when every stream has ended. Whoever can connect to lis needs no more than a URL that one of these calls gave. Without
// ServeStreams they are Unimplemented.
func (r *Runtime) ServeStreams(ctx context.Context, lis net.Listener) error {
	config := streaming.DefaultConfig
	config.BaseURL = &url.URL{Scheme: "http", Host: lis.Addr().String(), Path: "/"}
	urls, err := streaming.NewServer(config, streams{r})
	if err != nil {
		return fmt.Errorf("simulated runtime: %w", err)
	}
	r.setStreams(urls)
	defer r.setStreams(nil)

	var open sync.WaitGroup
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			open.Add(1)
			defer open.Done()
			urls.ServeHTTP(w, req)
		}),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second,
	}
	own := &gate{}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err = server.Serve(&gatedListener{Listener: &gatedListener{Listener: lis, gate: &r.gate}, gate: own})
	own.set(true) // streams are connections that the server has let go of
	_ = server.Shutdown(context.WithoutCancel(ctx))
	open.Wait()
	if ctx.Err() != nil && errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("streams of the simulated runtime on %s: %w", lis.Addr(), err)
}

func (r *Runtime) setStreams(s streaming.Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.streams = s
}

// errNoStreams is the answer of a runtime for which nobody calls ServeStreams.
var errNoStreams = status.Error(codes.Unimplemented, "this simulated runtime serves no streams")

// Exec implements the CRI.
func (r *runtimeServer) Exec(ctx context.Context, req *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	return prepared(ctx, r, r.containerTarget("Exec", req.GetContainerId()), func(s streaming.Server) (*runtimeapi.ExecResponse, error) {
		if _, err := r.running(req.GetContainerId()); err != nil {
			return nil, err
		}
		return s.GetExec(req)
	})
}

// Attach implements the CRI.
func (r *runtimeServer) Attach(ctx context.Context, req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	return prepared(ctx, r, r.containerTarget("Attach", req.GetContainerId()), func(s streaming.Server) (*runtimeapi.AttachResponse, error) {
		if _, err := r.running(req.GetContainerId()); err != nil {
			return nil, err
		}
		return s.GetAttach(req)
	})
}

// PortForward implements the CRI.
func (r *runtimeServer) PortForward(ctx context.Context, req *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	return prepared(ctx, r, r.sandboxTarget("PortForward", req.GetPodSandboxId()), func(s streaming.Server) (*runtimeapi.PortForwardResponse, error) {
		b, ok := r.store.sandboxes.get(req.GetPodSandboxId())
		switch {
		case !ok:
			return nil, notFound("failed to find sandbox %q", req.GetPodSandboxId())
		case !b.ready:
			return nil, errors.New("sandbox container is not running")
		}
		return s.GetPortForward(req)
	})
}

// prepared serves a call that gives a URL; effect is called with r.mu held.
func prepared[Resp any](ctx context.Context, r *runtimeServer, t Target, effect func(streaming.Server) (Resp, error)) (Resp, error) {
	return serve(ctx, r.Runtime, op[Resp]{target: t, effect: func(context.Context) (none Resp, _ error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.streams == nil {
			return none, errNoStreams
		}
		return effect(r.streams)
	}})
}

// running is the container if it runs; r.mu is held.
func (r *Runtime) running(id string) (*container, error) {
	c, ok := r.store.containers.get(id)
	if !ok {
		return nil, notFound("failed to find container %q in store", id)
	}
	if c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil, fmt.Errorf("container is in %s state", c.state)
	}
	return c, nil
}
