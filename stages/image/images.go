package image

import (
	"context"
	"fmt"

	"golang.org/x/time/rate"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

// Runtime is what this package needs of the runtime's image service. It is
// called concurrently.
type Runtime interface {
	// PullImage returns the reference of the pulled image in the runtime. It
	// has no deadline but the caller's.
	PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, pod *runtimeapi.PodSandboxConfig) (ref string, err error)
	// ImageStatus returns nil without an error when the image is not present.
	ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec) (*runtimeapi.Image, error)
}

// Images looks for images and pulls them. Its methods may be called concurrently.
type Images struct {
	Config
	guard guard
}

// Config is what Images works with.
type Config struct {
	Runtime Runtime
	Events  pod.Recorder
	// Limit makes a pull above it wait for its turn; nil: there is none.
	Limit *rate.Limiter
	// Keys are tried one after the other; nil: all pulls are anonymous.
	Keys Credentials
}

// New returns the work of image stages.
func New(c Config) *Images { return &Images{Config: c} }

// Limiter returns a limit of qps pulls per second with bursts of burst
// (registryPullQPS, registryBurst), or nil, which is no limit, for a qps of 0.
func Limiter(qps float64, burst int) *rate.Limiter {
	if qps <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(qps), max(burst, 1))
}

// Look asks the runtime once whether the image that p writes as ref is on the
// node and returns ImageFound under that ref, present or not. With policy
// Never an image that is not there is an error too; one that is loaded later
// is found by the next try.
func (i *Images) Look(ctx context.Context, p *v1.Pod, ref string, policy v1.PullPolicy) (pod.Facts, error) {
	name, err := Normalize(ref)
	if err != nil {
		i.tell(p, ref, v1.EventTypeWarning, "InspectFailed",
			fmt.Sprintf("Failed to apply default image tag %q: %v", ref, err))
		return nil, err
	}
	found, err := i.find(ctx, spec(p, name))
	switch {
	case err != nil:
		return nil, i.uninspected(ctx, p, ref, err)
	case found != nil:
		i.tell(p, ref, v1.EventTypeNormal, "Pulled",
			fmt.Sprintf("Container image %q already present on machine and can be accessed by the pod", ref))
		return pod.Facts{pod.ImageFound{Ref: ref, Image: fact(found)}}, nil
	}
	absent := pod.Facts{pod.ImageFound{Ref: ref}}
	if policy != v1.PullNever {
		return absent, nil
	}
	//lint:ignore ST1005 the ecosystem's sentence, shown as it is
	err = fmt.Errorf("Container image %q is not present with pull policy of Never", ref)
	i.tell(p, ref, v1.EventTypeWarning, "ErrImageNeverPull", err.Error())
	return absent, pod.WithReason("ErrImageNeverPull", err)
}

// find asks the runtime for an image, and again when images were removed
// meanwhile.
func (i *Images) find(ctx context.Context, image *runtimeapi.ImageSpec) (*runtimeapi.Image, error) {
	for {
		mark := i.guard.seen()
		found, err := i.Runtime.ImageStatus(ctx, image)
		if err != nil || found == nil {
			return nil, err
		}
		if ok, err := i.guard.told(ctx, found.GetId(), mark); ok || err != nil {
			return found, err
		}
	}
}

// uninspected is the error of a look that the runtime did not answer.
func (i *Images) uninspected(ctx context.Context, p *v1.Pod, ref string, err error) error {
	err = fmt.Errorf("failed to inspect image %q: %w", ref, err)
	if !abandoned(ctx) {
		i.tell(p, ref, v1.EventTypeWarning, "InspectFailed", err.Error())
	}
	return pod.WithReason("ImageInspectError", retried(err))
}

// spec is how the runtime is asked for an image on behalf of p.
func spec(p *v1.Pod, name string) *runtimeapi.ImageSpec {
	return &runtimeapi.ImageSpec{Image: name, Annotations: p.GetAnnotations()}
}

func fact(found *runtimeapi.Image) pod.Image {
	image := pod.Image{ID: found.GetId(), User: found.GetUsername()}
	if found.GetUid() != nil {
		uid := found.GetUid().GetValue()
		image.UID = &uid
	}
	return image
}

// tell records an event of the first container of p that shows ref.
func (i *Images) tell(p *v1.Pod, ref, eventType, reason, message string) {
	i.Events.Event(p, crifact.FieldPathOfImage(p, ref), eventType, reason, message)
}
