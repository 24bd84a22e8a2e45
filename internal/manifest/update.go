package manifest

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Kind says what an Update tells.
type Kind uint8

const (
	// Set says that the pod is desired, as given.
	Set Kind = iota + 1
	// Gone says that the pod is not desired any more.
	Gone
	// Synced says that all that the source knows has been told once. It
	// comes once in a Run and has no other fields but Seen.
	Synced
)

// String is the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Set:
		return "set"
	case Gone:
		return "gone"
	case Synced:
		return "synced"
	}
	return "unknown"
}

// Update is one fact that a source of static pods tells. It is immutable, and
// so is the pod.
type Update struct {
	Kind     Kind
	Path     string    // the manifest: a file, or a URL without what may be secret in it
	UID      types.UID // of the pod
	FullName string    // namespace/name of the pod
	Pod      *v1.Pod   // Set: the pod; Gone: the last one that was set
	Revision string    // changes exactly when what the user wrote changes
	Seen     time.Time // when the source saw it
}

// UID of the pod.
func (s *Static) UID() types.UID { return s.Pod.UID }

// FullName is the pod's namespace/name.
func (s *Static) FullName() string { return s.Pod.Namespace + "/" + s.Pod.Name }

// Update tells about the pod, whose manifest is at path.
func (s *Static) Update(kind Kind, path string, now time.Time) Update {
	return Update{Kind: kind, Path: path, UID: s.UID(), FullName: s.FullName(), Pod: s.Pod, Revision: s.Revision, Seen: now}
}
