package container

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/pod"
)

// Reasons, as the kubelet words them: waiting reasons of containers.
const (
	reasonConfig = "CreateContainerConfigError"
	reasonCreate = "CreateContainerError"
	reasonRun    = "RunContainerError"
	reasonKill   = "KillContainerError"
)

// Runtime is what this package needs of the runtime's containers. It is called
// concurrently.
type Runtime interface {
	Maker
	Updater
	Ender
}

// Updater changes containers that run.
type Updater interface {
	UpdateContainerResources(ctx context.Context, id string, resources *runtimeapi.LinuxContainerResources) error
}

// Maker makes containers and reads them.
type Maker interface {
	// CreateContainer is not idempotent: the name of a container (name, pod,
	// attempt) can be taken once.
	CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, pod *runtimeapi.PodSandboxConfig) (id string, err error)
	StartContainer(ctx context.Context, id string) error
	ContainerStatus(ctx context.Context, id string) (*runtimeapi.ContainerStatus, error)
}

// Ender stops and removes containers; an unknown ID is success.
type Ender interface {
	// StopContainer returns when the container has ended, by itself within
	// grace or killed.
	StopContainer(ctx context.Context, id string, grace time.Duration) error
	RemoveContainer(ctx context.Context, id string) error
}

// Volumes knows where the volumes of pods are on this node.
type Volumes interface {
	// VolumePath returns the directory or file that a volume of p is at; an
	// error if it is not set up.
	VolumePath(p *v1.Pod, volume string) (string, error)
}

// SubPaths can show a part of a volume. Volumes that can do so implement it;
// without it a container with a subPath does not start.
type SubPaths interface {
	// SubPath returns a place at which the part name of the volume of
	// ct.VolumeMounts[index] is mounted, and nothing else, whatever becomes of
	// the volume's content meanwhile. A part that is missing is made. It may
	// block like a mount.
	SubPath(p *v1.Pod, ct *v1.Container, index int, name string) (string, error)
}

// Files gives out the files of a pod's own directory that its containers show.
// They are there as long as the pod is.
type Files interface {
	// HostsFile returns the path of the pod's /etc/hosts.
	HostsFile(uid types.UID) string
	// WriteHosts writes that file. It is called before each start of a
	// container, concurrently for containers of one pod, then with equal contents.
	WriteHosts(uid types.UID, h Hosts) error
	// NewTerminationLog makes an empty file for the last words of one start of
	// a container and returns its path.
	NewTerminationLog(uid types.UID, container string) (string, error)
}

// Hosts is what a pod's /etc/hosts says.
type Hosts struct {
	// HostNetwork: the node's file is shown instead of the fields Hostname,
	// Domain and IPs.
	HostNetwork bool
	Hostname    string
	Domain      string // empty: the name has none
	IPs         []string
	Aliases     []v1.HostAlias
}

// Config holds the collaborators of Containers.
type Config struct {
	Runtime Runtime
	Events  pod.Recorder
	Volumes Volumes
	Files   Files
	// Hash is written into the annotation by which a running container is
	// compared with its spec.
	Hash     func(*v1.Container) string
	Settings Settings
	// Handler returns what the runtime handler of a pod can do; nil: nothing
	// but the usual. It is asked at each start, because a runtime may be replaced.
	Handler func(p *v1.Pod) pod.HandlerFeatures
	// ImageVolumes says whether the runtime mounts images as volumes; nil: it
	// does not. It is asked at each start, because a runtime may be replaced.
	ImageVolumes func() bool
	Log          *slog.Logger // nil: what is only worth a warning is not told
}

// Settings are what the node and its configuration say about containers.
type Settings struct {
	NodeIPs       []string        // primary first
	Memory        int64           // the node's memory in bytes
	Allocatable   v1.ResourceList // what an unlimited container is told as its limit
	HugePageSizes []string        // the kernel's names, such as "2MB"
	CgroupV2      bool
	SwapLimit     bool  // swap can be limited here; then no container uses any, but for LimitedSwap
	LimitedSwap   bool  // memorySwap.swapBehavior LimitedSwap
	Swap          int64 // the node's swap in bytes
	MemoryQoS     MemoryQoS
	OOMGroup      bool          // cgroup v2: a container out of memory is killed as a whole
	Period        time.Duration // cpuCFSQuotaPeriod; 0: CPU limits are not enforced

	StopSignals bool // the gate ContainerStopSignals
	EnvFiles    bool // the gate EnvFiles

	ClusterDomain  string // clusterDomain
	SeccompDir     string // where profiles of type Localhost are
	SeccompDefault bool   // seccompDefault

	LinkDir string // where the links to logs are, /var/log/containers; empty: none are made
}

// MemoryQoS says how the memory that containers request is kept for them, on
// cgroup v2.
type MemoryQoS struct {
	On       bool // the gate MemoryQoS
	Reserved bool // memoryReservationPolicy TieredReservation
	// High returns from how many bytes on the memory of a container that
	// requests and may have that many is reclaimed; 0: never. nil: never.
	High func(request, limit int64) int64
}

// Containers starts, stops and removes containers. Its methods may be called
// concurrently; those that start or stop one container must not.
type Containers struct {
	Config
	masked []string
}

// New returns Containers.
func New(c Config) *Containers {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	// The pattern is a constant, so it is never malformed.
	throttles, _ := filepath.Glob("/sys/devices/system/cpu/cpu*/thermal_throttle")
	return &Containers{Config: c, masked: append(maskedPaths(), throttles...)}
}

func (c *Containers) handler(p *v1.Pod) pod.HandlerFeatures {
	if c.Config.Handler == nil {
		return pod.HandlerFeatures{}
	}
	return c.Config.Handler(p)
}

// event records an event about a container of s.
func (c *Containers) event(s *pod.State, container string, eventType, reason, message string) {
	p := s.Pod()
	path := ""
	if p != nil {
		path = crifact.FieldPath(p, container)
	} else { // known from the runtime only
		p = &v1.Pod{}
		p.Name, p.Namespace, p.UID = s.Identity.Name, s.Identity.Namespace, s.Identity.UID
	}
	if path == "" {
		path = "spec.containers{" + container + "}"
	}
	c.Events.Event(p, path, eventType, reason, message)
}

// seen is a look at one container of s.
func seen(s *pod.State, ct pod.Container) pod.Facts {
	return pod.Facts{pod.Observed{Ended: time.Now(), Identity: s.Identity, Partial: true, Containers: []pod.Container{ct}}}
}

// retried makes an error of a runtime that is away one that is soon tried
// again: it is no fault of the pod, and the runtime may be back at any time.
func retried(err error) error {
	if crifact.Unreachable(err) {
		return dag.RetryAfter(err, time.Second)
	}
	return err
}
