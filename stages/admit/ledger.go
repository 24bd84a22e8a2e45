package admit

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

// Config describes the node that pods are admitted to.
type Config struct {
	Capacity    v1.ResourceList
	Allocatable v1.ResourceList // what pods may request in sum; "pods" limits their number, when present
	Labels      map[string]string
	NodeName    string
	// Sysctls are the names that pods may set; a name that ends in * is a
	// prefix. See SafeSysctls.
	Sysctls []string
	// StrictGroups: the runtime supports supplementalGroupsPolicy Strict.
	StrictGroups bool
	// AppArmor: the host enforces AppArmor profiles.
	AppArmor bool
}

// Ledger says which pods the node has room for and holds it for them. Its
// methods may be called concurrently; none blocks, and none walks the pods
// that are there.
type Ledger struct{}

// NewLedger returns a ledger without entries.
func NewLedger(c Config) *Ledger { return &Ledger{} }

// Configure replaces the node's description, for example after a label
// changed. Entries stay: a pod that runs is never admitted again.
func (l *Ledger) Configure(c Config) {}

// Admit decides about a pod and, when it is taken, reserves its room in the
// same moment. The fact is pod.Admitted or pod.Rejected. A NoRoomError says
// that the pod is neither: it would fit once ending pods are gone. A pod that
// has an entry is admitted again without a look.
func (l *Ledger) Admit(ctx context.Context, s *pod.State) (pod.Facts, error) { return nil, nil }

// Reserve enters a pod that runs already, whether it fits or not.
func (l *Ledger) Reserve(s *pod.State) {}

// Ending marks the pod's entry: its room will be free before long.
func (l *Ledger) Ending(s *pod.State) {}

// Release frees the room of that incarnation of the pod; it reports whether
// there was any, so that those who wait are told.
func (l *Ledger) Release(s *pod.State) bool { return false }

// Room reports whether Admit would decide about the pod now (it may well
// reject it). If not, waitingFor names the ending pods, as namespace/name,
// whose room it waits for. It changes nothing.
func (l *Ledger) Room(s *pod.State) (ok bool, waitingFor []string) { return true, nil }
