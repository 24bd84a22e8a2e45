package image

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

// Pull pulls the image that p writes as ref and reads its user; it returns
// ImageFound under that ref, by p. It blocks until the runtime has the image,
// refuses, or ctx ends.
func (i *Images) Pull(ctx context.Context, p *v1.Pod, ref string, sandbox *runtimeapi.PodSandboxConfig) (pod.Facts, error) {
	name, err := Normalize(ref)
	if err != nil {
		i.tell(p, ref, v1.EventTypeWarning, "InspectFailed",
			fmt.Sprintf("Failed to apply default image tag %q: %v", ref, err))
		return nil, err
	}
	i.tell(p, ref, v1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", ref))
	wanted := time.Now()
	if err := i.turn(ctx); err != nil {
		return nil, fmt.Errorf("waiting for registryPullQPS to pull image %q: %w", ref, err)
	}
	began := time.Now()
	id, err := i.pull(ctx, name, &runtimeapi.PullImageRequest{Image: spec(p, name), SandboxConfig: sandbox})
	if err != nil {
		return nil, i.failed(ctx, p, ref, err)
	}
	ended := time.Now()
	found, err := i.find(ctx, spec(p, id))
	if err != nil {
		return nil, i.uninspected(ctx, p, ref, err)
	}
	image := fact(found)
	if image.ID == "" { // a runtime that does not find its own reference again
		image.ID = id
	}
	i.tell(p, ref, v1.EventTypeNormal, "Pulled", fmt.Sprintf(
		"Successfully pulled image %q in %s (%s including waiting). Image size: %d bytes.",
		ref, ended.Sub(began).Truncate(time.Millisecond), ended.Sub(wanted).Truncate(time.Millisecond), found.GetSize()))
	return pod.Facts{pod.ImageFound{Ref: ref, Image: image, By: p.GetUID()}}, nil
}

// pull tries the credentials that there are for the image one after the other,
// or once without any. Of several failures each is told.
func (i *Images) pull(ctx context.Context, name string, r *runtimeapi.PullImageRequest) (id string, err error) {
	var auths []*runtimeapi.AuthConfig
	var unread error
	if i.Keys != nil {
		auths, unread = i.Keys.For(name)
	}
	if len(auths) == 0 {
		auths = []*runtimeapi.AuthConfig{nil}
	}
	for _, auth := range auths {
		id, failed := i.Runtime.PullImage(ctx, r.GetImage(), auth, r.GetSandboxConfig())
		if failed == nil {
			return id, nil
		}
		err = and(err, failed)
		if ctx.Err() != nil || crifact.Unreachable(failed) {
			break
		}
	}
	return "", and(err, unread)
}

// and returns both errors as one, on one line.
func and(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return fmt.Errorf("%w; %w", a, b)
}

func (i *Images) turn(ctx context.Context) error {
	if i.Limit == nil {
		return nil
	}
	if err := i.Limit.Wait(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	return nil
}

// failed tells about a pull that failed, unless it was given up, and gives the
// error its reason.
func (i *Images) failed(ctx context.Context, p *v1.Pod, ref string, err error) error {
	reason := reasonOf(err)
	if !abandoned(ctx) {
		i.tell(p, ref, v1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: %v", ref, err))
		i.tell(p, ref, v1.EventTypeWarning, "Failed", "Error: "+reason)
	}
	return pod.WithReason(reason, retried(fmt.Errorf("failed to pull image %q: %w", ref, err)))
}

// abandoned reports whether nobody waits any longer for what ctx is for; to
// have run out of time is a failure like any other.
func abandoned(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), dag.ErrDeadline)
}

// reasonOf returns the waiting reason of a failed pull. Runtimes name two
// causes by the first word of their message (CRI v1, errors of PullImage).
func reasonOf(err error) string {
	for _, reason := range []string{"RegistryUnavailable", "SignatureValidationFailed"} {
		if strings.HasPrefix(crifact.Message(err), reason) {
			return reason
		}
	}
	return "ErrImagePull"
}

// retried makes an error of a runtime that is away one that is soon tried
// again: no fault of the image, and the runtime may be back at any time.
func retried(err error) error {
	if crifact.Unreachable(err) {
		return dag.RetryAfter(err, time.Second)
	}
	return err
}
