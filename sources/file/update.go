package file

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/manifest"
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

// Update is one fact. It is immutable, and so is the pod.
type Update struct {
	Kind     Kind
	Path     string    // the manifest
	UID      types.UID // of the pod
	FullName string    // namespace/name of the pod
	Pod      *v1.Pod   // Set: the pod; Gone: the last one that was set
	Revision string    // changes exactly when what the user wrote changes
	Seen     time.Time // when the source saw it
}

// FileStatus is what the source makes of one file.
type FileStatus struct {
	Path     string
	Ignored  string             // why it is no manifest; then all else is empty
	UID      types.UID          // of the pod that it stands for; empty: none yet
	FullName string             // of that pod
	Revision string             // of that pod: the last good one, not what the file holds now if Err is set
	Since    time.Time          // when that revision was first seen
	Warnings []manifest.Problem // of that revision
	Err      error              // why what the file holds now is not used; often a *manifest.Error
	ErrSince time.Time
	Conflict string // why its pod is not set: another file has its name or UID
}

// version is a pod as one file said it, and when that was first seen.
type version struct {
	*manifest.Static
	seen time.Time
}

func (v *version) uid() types.UID { return v.Pod.UID }

func (v *version) fullName() string { return v.Pod.Namespace + "/" + v.Pod.Name }

func (v *version) update(kind Kind, path string, now time.Time) Update {
	return Update{Kind: kind, Path: path, UID: v.uid(), FullName: v.fullName(), Pod: v.Pod, Revision: v.Revision, Seen: now}
}
