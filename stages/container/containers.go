package container

import (
	"context"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

// Runtime is what this package needs of the runtime's containers. It is called concurrently.
type Runtime interface {
	Maker
	Ender
}

// Maker makes containers and reads them.
type Maker interface {
	// CreateContainer is not idempotent: the name of a container (name, pod, attempt) can be taken once.
	CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, pod *runtimeapi.PodSandboxConfig) (id string, err error)
	StartContainer(ctx context.Context, id string) error
	ContainerStatus(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error)
}

// Ender stops and removes containers; an unknown ID is success.
type Ender interface {
	// StopContainer returns when the container has ended, by itself within grace or killed.
	StopContainer(ctx context.Context, id string, grace time.Duration) error
	RemoveContainer(ctx context.Context, id string) error
}

// Volumes knows where the volumes of pods are on this node.
type Volumes interface {
	// VolumePath returns the directory or file that a volume of p is at; an error if it is not set up.
	VolumePath(p *v1.Pod, volume string) (string, error)
}

// Files gives out the files of a pod's own directory that its containers show.
type Files interface {
	// HostsFile returns the path of the pod's /etc/hosts.
	HostsFile(uid types.UID) string
	// NewTerminationLog makes an empty file for one container's last words and returns its path.
	NewTerminationLog(uid types.UID, container string) (string, error)
}

// Config holds the collaborators of Containers.
type Config struct {
	Runtime Runtime
	Events  pod.Recorder
	Volumes Volumes
	Files   Files
	// Hash is written into the annotation by which a running container is compared with its spec.
	Hash     func(*v1.Container) string
	Settings Settings
	Log      *slog.Logger
}

// Settings are what the node and its configuration say about containers.
type Settings struct {
	LinkDir string // where /var/log/containers is; empty: no links are made
}

// Containers starts, stops and removes containers.
type Containers struct{ Config }

// New returns Containers.
func New(c Config) *Containers { return &Containers{c} }

// Start is one start of a container.
type Start struct {
	State     *pod.State
	Container *v1.Container
	Init      bool
	Attempt   uint32
	SandboxID string
	Sandbox   *runtimeapi.PodSandboxConfig
	Existing  string // a CREATED container of this attempt: it is started, none is made
	Image     pod.Image
}

// Start makes and starts a container, at most three calls of the runtime.
func (c *Containers) Start(ctx context.Context, start Start) (pod.Facts, error) {
	panic("not implemented")
}

// Stop is one stop of a container.
type Stop struct {
	State     *pod.State
	Container pod.Container
	Grace     time.Duration // what is left of it now
	Message   string        // why, for the event; empty: "Stopping container NAME"
}

// Stop stops a container and learns how it ended.
func (c *Containers) Stop(ctx context.Context, stop Stop) (pod.Facts, error) {
	panic("not implemented")
}

// Remove removes a container with its log files.
func (c *Containers) Remove(ctx context.Context, ct pod.Container) (pod.Facts, error) {
	panic("not implemented")
}

// Finish adds the container's own last words to what st told about its exit.
func (c *Containers) Finish(ct *pod.Container, st *runtimeapi.ContainerStatus) {
	panic("not implemented")
}

// Unsupported returns the paths of the fields of p that this build does not act on.
func Unsupported(p *v1.Pod) []string { panic("not implemented") }
