package image

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

// Reasons, as the kubelet words them: waiting reasons of containers.
const (
	reasonNeverPull  = "ErrImageNeverPull"
	reasonInspect    = "ImageInspectError"
	reasonPull       = "ErrImagePull"
	reasonRegistry   = "RegistryUnavailable"
	reasonSignature  = "SignatureValidationFailed"
	retryUnreachable = time.Second // a runtime that is away is soon back, or is waited for
	eventPrecision   = time.Millisecond
	eventNormal      = v1.EventTypeNormal
	eventWarning     = v1.EventTypeWarning
	eventFailed      = "Failed"
	eventPulled      = "Pulled"
	eventPulling     = "Pulling"
	eventInspect     = "InspectFailed"
	eventNeverPull   = "ErrImageNeverPull"
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

// Limiter returns a limit of qps pulls per second with bursts of burst
// (registryPullQPS, registryBurst), or nil, which is no limit, for a qps of 0.
func Limiter(qps float64, burst int) *rate.Limiter {
	if qps <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(qps), max(burst, 1))
}

// Images looks for images and pulls them.
type Images struct {
	runtime Runtime
	events  pod.Recorder
	limit   *rate.Limiter
}

// New returns Images over a runtime. limit may be nil; where it is set, a pull
// above it waits for its turn.
func New(runtime Runtime, events pod.Recorder, limit *rate.Limiter) *Images {
	return &Images{runtime, events, limit}
}

// Look asks the runtime once whether the image that p writes as ref is on the
// node and returns ImageFound under that ref, present or not. With policy
// Never an image that is not there is an error too; one that is loaded later
// is found by the next try.
func (i *Images) Look(ctx context.Context, p *v1.Pod, ref string, policy v1.PullPolicy) (pod.Facts, error) {
	panic("not implemented")
}

// Pull is one pull of an image.
type Pull struct {
	Pod     *v1.Pod // the pod whose stage does the pull, also for those that joined it
	Ref     string  // as the pod writes it
	Sandbox *runtimeapi.PodSandboxConfig
}

// Pull pulls an image and reads its user; it returns ImageFound. It blocks
// until the runtime has the image, refuses, or ctx ends.
func (i *Images) Pull(ctx context.Context, pull Pull) (pod.Facts, error) {
	panic("not implemented")
}
