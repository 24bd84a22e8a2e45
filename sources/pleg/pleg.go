package pleg

import (
	"context"
	"time"

	"github.com/sourcegraph/conc"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/pipeline"
)

// Name is the name of the source.
const Name = "pleg"

// Topics whose events carry a pod.RuntimeStatus, the same on both. Reason and
// Message are those of the first part that is not ready.
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

// Config of a Source. Zero durations and numbers mean the defaults.
type Config struct {
	Runtime Runtime
	// Known lists the pods that are known, of which an absence must be told.
	Known func() []pod.Key
	// State returns what is known about a pod, nil for nothing. What it has
	// in detail is not asked for again. Neither function may block.
	State func(pod.Key) *pod.State

	// Finish adds a container's last words to what its status says. Optional;
	// it must be quick, since it is called where events are read too.
	Finish func(c *pod.Container, st *runtimeapi.ContainerStatus)

	Relist      time.Duration // between two lists without an event stream (1 s)
	SlowRelist  time.Duration // the same with a stream (30 s)
	StatusEvery time.Duration // between two questions to the runtime about itself (5 s)
	CallTimeout time.Duration // of one read of one object (10 s)
	Workers     int           // pods that are read in detail at a time (10)
	SkipEvents  bool          // lists only
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{
		{&c.Relist, time.Second},
		{&c.SlowRelist, 30 * time.Second},
		{&c.StatusEvery, 5 * time.Second},
		{&c.CallTimeout, 10 * time.Second},
	} {
		if *d.v <= 0 {
			*d.v = d.def
		}
	}
	if c.Workers <= 0 {
		c.Workers = 10
	}
	return c
}

// Source is the runtime as a source of facts.
type Source struct {
	cfg    Config
	health health
}

var _ pipeline.Source[pod.Key, pod.Change] = (*Source)(nil)

// New returns a source; it makes no calls.
func New(cfg Config) *Source { return &Source{cfg: cfg.withDefaults()} }

// Name implements pipeline.Source.
func (s *Source) Name() string { return Name }

type emitter = func(pipeline.Event[pod.Key, pod.Change])

// Run implements pipeline.Source. A runtime that is away is waited for.
func (s *Source) Run(ctx context.Context, emit func(pipeline.Event[pod.Key, pod.Change])) error {
	r := &run{
		Source: s, emit: emit, soon: make(chan struct{}, 1), ask: make(chan struct{}, 1), back: make(chan struct{}, 1),
	}
	var owned conc.WaitGroup
	r.reader = newReader(&owned, s.cfg.Workers)
	owned.Go(func() { r.relists(ctx) })
	owned.Go(func() { r.statuses(ctx) })
	if s.cfg.SkipEvents {
		s.health.noStream("switched off")
	} else {
		owned.Go(func() { r.streams(ctx) })
	}
	owned.Wait()
	return nil
}

// run is one Run of the source. Its channels have room for one: a wake-up that
// is there already is not needed twice.
type run struct {
	*Source
	emit    emitter
	reader  *reader
	retries retries
	soon    chan struct{} // list soon
	ask     chan struct{} // ask the runtime about itself
	back    chan struct{} // the runtime is back
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (r *run) pod(uid types.UID, c pod.Change) {
	r.emit(pipeline.Event[pod.Key, pod.Change]{Key: pod.KeyOf(uid), Change: c, Source: Name, Seen: time.Now()})
}

func (r *run) topic(topic string, c pod.Change) {
	r.emit(pipeline.Event[pod.Key, pod.Change]{Topic: topic, Change: c, Source: Name, Seen: time.Now()})
}

// pause waits for d, a wake-up or the end, which is false.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-t.C:
	}
	return true
}
