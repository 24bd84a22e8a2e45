package app

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/flowlet/flowlet/cri"
)

// RuntimeInfo is what the container runtime says it is, once it was asked.
type RuntimeInfo struct {
	client  *cri.Client
	version atomic.Pointer[string]
	name    atomic.Pointer[string]
}

// Name returns the runtime's name, the scheme of container IDs; "containerd"
// until the runtime has told.
func (r *RuntimeInfo) Name() string {
	if n := r.name.Load(); n != nil {
		return *n
	}
	return "containerd"
}

// Version returns the runtime's version, or "" until the runtime has told.
func (r *RuntimeInfo) Version() string {
	if v := r.version.Load(); v != nil {
		return *v
	}
	return ""
}

// run asks the runtime once, again and again until it answers.
func (r *RuntimeInfo) run(ctx context.Context) error {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(5*time.Second),
		backoff.WithRandomizationFactor(0), backoff.WithMaxElapsedTime(0))
	ask := func() error {
		v, err := r.client.Version(ctx)
		if err != nil {
			return err
		}
		name, version := v.GetRuntimeName(), v.GetRuntimeVersion()
		r.name.Store(&name)
		r.version.Store(&version)
		return nil
	}
	if err := backoff.Retry(ask, backoff.WithContext(b, ctx)); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}
