package status

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Kinds of stages whose memo entries the status is made from. The instance of
// image stages is the reference as the spec has it, of the others the name of
// the container.
const (
	KindImageLook = "image.look"
	KindImage     = "image"
	KindInputs    = "inputs"
	KindSandbox   = "sandbox"
	KindInit      = "init"
	KindContainer = "container"
	KindEphemeral = "ephemeral"
)

// CrashLoop begins the Why of a hold that waits for the crash-loop back-off.
const CrashLoop = "crash-loop back-off"

// In is all that a status is made from.
type In struct {
	Now   time.Time
	State *pod.State // with a Spec
	Memo  dag.Memo
	// Runtime is the scheme of container IDs: the runtime's name, as "containerd".
	Runtime string
	// HostIPs are the node's addresses, one per family, primary first.
	HostIPs []string
	// Prev is the status before this one, or nil. Times of unchanged
	// conditions, conditions of others and a terminal phase are kept from it.
	Prev *v1.PodStatus
	// Probes tells what the probes of a running container found; nil: no
	// container has probes.
	Probes func(c *v1.Container, id string) (started, ready bool)
	// Verdict is why the node ends the pod (eviction, deadline), or nil.
	Verdict *Verdict
}

// Verdict is a reason of the node's own to end a pod, which then has failed.
type Verdict struct {
	Reason     string // Evicted, DeadlineExceeded, Preempting …
	Message    string
	Disruption bool // tell it in the condition DisruptionTarget too
}

// Compute returns the status of a pod. It is pure; the result shares no
// memory with Prev that is ever written.
func Compute(in In) v1.PodStatus { return v1.PodStatus{} }
