package http

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
	// Synced says that all that the URL serves has been told once. It comes
	// once in a Run and has no other fields but Seen.
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
	Path     string    // the URL, without what may be secret in it
	UID      types.UID // of the pod
	FullName string    // namespace/name of the pod
	Pod      *v1.Pod   // Set: the pod; Gone: the last one that was set
	Revision string    // changes exactly when what the user wrote changes
	Seen     time.Time // when the source saw it
}

// State is what the source makes of its URL. It is a snapshot.
type State struct {
	URL      string      // without what may be secret in it
	Asked    time.Time   // when the last answer, or the lack of one, was seen; zero: not yet
	Good     time.Time   // when what the URL serves was last understood; zero: not yet
	Err      error       // why the last answer is not used; often a *manifest.Error
	ErrSince time.Time   // since when it has been so, whatever the error
	Pods     []PodStatus // of the last good answer, in its order
}

// PodStatus is what became of one pod of the last good answer.
type PodStatus struct {
	UID      types.UID
	FullName string
	Revision string
	Since    time.Time          // when that revision was first seen
	Warnings []manifest.Problem // of that revision
	Conflict string             // why it is not set: another one has its name or UID
}

// version is a pod as an answer said it, and when that was first seen.
type version struct {
	*manifest.Static
	seen  time.Time
	clash string // the conflict
}

func (v *version) uid() types.UID { return v.Pod.UID }

func (v *version) fullName() string { return v.Pod.Namespace + "/" + v.Pod.Name }

func (v *version) update(kind Kind, path string, now time.Time) Update {
	return Update{Kind: kind, Path: path, UID: v.uid(), FullName: v.fullName(), Pod: v.Pod, Revision: v.Revision, Seen: now}
}

func (v *version) status() PodStatus {
	return PodStatus{
		UID: v.uid(), FullName: v.fullName(), Revision: v.Revision, Since: v.seen, Warnings: v.Warnings, Conflict: v.clash,
	}
}
