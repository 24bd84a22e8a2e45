package pleg

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/pipeline"
)

// Name is the name of the source.
const Name = "pleg"

// Topics whose events carry a pod.RuntimeStatus. Each is told when its part
// of it changes.
const (
	TopicRuntime = "runtime-ready"
	TopicNetwork = "net-ready"
)

// Lister lists what the runtime has; a nil filter means all.
type Lister interface {
	ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error)
	ListContainers(ctx context.Context, filter *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error)
}

// Inspector reads one object in full. An unknown object is a gRPC NotFound.
type Inspector interface {
	PodSandboxStatus(ctx context.Context, id string) (*runtimeapi.PodSandboxStatus, error)
	ContainerStatus(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error)
}

// Reporter tells about the runtime itself and streams container events to
// emit, which does not block, until the stream breaks. A runtime without
// events answers gRPC Unimplemented.
type Reporter interface {
	Status(ctx context.Context) (*runtimeapi.StatusResponse, error)
	GetContainerEvents(ctx context.Context, emit func(*runtimeapi.ContainerEventResponse)) error
}

// Runtime is the part of a CRI client that the source needs; *cri.Client fits.
type Runtime interface {
	Lister
	Inspector
	Reporter
}

// Config of a Source. Zero durations mean the defaults.
type Config struct {
	Runtime Runtime
	// Known lists the pods that are known, of which an absence must be told.
	Known func() []pod.Key
	// State returns what is known about a pod, nil for nothing. What it
	// has in detail is not asked for again. It must not block.
	State func(pod.Key) *pod.State

	Relist      time.Duration // between two lists without an event stream (1 s)
	SlowRelist  time.Duration // the same with a stream (30 s)
	StatusEvery time.Duration // between two questions to the runtime about itself (5 s)
	CallTimeout time.Duration // of one read of one object (10 s)
	Workers     int           // reads of objects at a time (10)
	SkipEvents  bool          // lists only
}

// Source is the runtime as a source of facts.
type Source struct{ cfg Config }

var _ pipeline.Source[pod.Key, pod.Change] = (*Source)(nil)

// New returns a source; it makes no calls.
func New(cfg Config) *Source { return &Source{cfg: cfg} }

// Name implements pipeline.Source.
func (s *Source) Name() string { return Name }

// Run implements pipeline.Source.
func (s *Source) Run(ctx context.Context, emit func(pipeline.Event[pod.Key, pod.Change])) error {
	<-ctx.Done()
	return nil
}

// Look reads everything the runtime has of one pod, with all details, and
// returns it as one pod.Observed. It may be called while Run does not run.
func (s *Source) Look(ctx context.Context, uid types.UID) (pod.Facts, error) { return nil, nil }

// Health tells how the source fares. It may be called at any time.
func (s *Source) Health() Health { return Health{} }

// Health is how the source fares.
type Health struct {
	Listed    time.Time // begin of the last successful list; zero: never
	ListErr   error     // of the last list
	Answered  time.Time // last answer of the runtime about itself
	StatusErr error     // of the last question
	Events    bool      // the event stream is open
	Since     time.Time // since when it is so
	Why       string    // why there is no event stream
}
