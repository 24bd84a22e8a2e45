package bench

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
)

// System is an agent under test. All its methods may be called concurrently;
// none but Run blocks.
type System interface {
	Runner
	Pods
	Meter
}

// Runner runs the agent.
type Runner interface {
	// Run runs the agent until ctx ends and returns when all it started has
	// ended. It calls up once, when the agent is ready to take pods. Pods that
	// run by then go on.
	Run(ctx context.Context, up func()) error
}

// Pods is the agent's only source of pods.
type Pods interface {
	// Set hands a new or changed pod over. The pod must not be changed after.
	Set(p *v1.Pod)
	// Unset says that the pod is no longer wanted.
	Unset(p *v1.Pod)
}

// Meter reads the agent's counters.
type Meter interface{ Stats() Stats }

// Stats are counters of an agent; all but Dirty only grow.
type Stats struct {
	Events    uint64 // folded
	Unchanged uint64 // of these: told nothing new
	Steps     uint64 // looks at a pod
	Runs      uint64 // runs of stages: whatever is called or written is done in one
	Dirty     int    // pods that are to be looked at now
}

// Explainer is an agent that can say what keeps its pods from getting further.
type Explainer interface{ Why() string }

// Syncer lets the sync workload make events about settled pods.
type Syncer interface {
	// Resync emits the pod's spec once more, as it is.
	Resync(uid types.UID)
	// Relist emits what the runtime shows of the pod once more, as it is.
	Relist(uid types.UID)
	// Step asks for a full step: the graph is built, decided on, and the
	// status computed.
	Step(uid types.UID)
}

// Hooks are told by the agent. They do not block and may be called
// concurrently.
type Hooks struct {
	Started func(Started)
	Gone    func(uid types.UID)
}

// Started says that a pod became ready, or that its start ended otherwise.
type Started struct {
	UID     types.UID
	At      time.Time
	Outcome string        // "ready"
	Path    func() []Wait // what the start waited for; computed when called
}

// Wait is a part of the critical path of a pod's start.
type Wait struct {
	Kind  string // of the stage; empty: no stage was busy
	State string // running, queued, held, waiting, idle …
	Took  time.Duration
}

// Setup is what an agent is made from.
type Setup struct {
	Client    *cri.Client
	Simulated bool // by the runtime: nothing of the machine is to be touched
	Pods      int  // that it has to have room for
	Hooks     Hooks
}

// Factory makes an agent that does not run yet.
type Factory func(Setup) (System, error)

// Machine is what has to be made on the node for a pod besides the runtime's
// part. The floor makes it too, so that both do the same work.
type Machine interface {
	Ensure(ctx context.Context, p *v1.Pod) error
	// Remove undoes Ensure, also where it was done by the agent. Idempotent.
	Remove(ctx context.Context, p *v1.Pod) error
	// Sandbox and Container are the requests that the agent would make, so
	// that the runtime has the same work.
	Sandbox(p *v1.Pod) (*runtimeapi.PodSandboxConfig, error)
	Container(m Made) (*runtimeapi.ContainerConfig, error)
}

// Made is what there is when a container is to be made.
type Made struct {
	Pod     *v1.Pod
	Index   int    // of the container
	ImageID string // of its image
	Sandbox *runtimeapi.PodSandboxStatus
}
