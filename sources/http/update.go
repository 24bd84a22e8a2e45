package http

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/manifest"
)

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

func (v *version) status() PodStatus {
	return PodStatus{
		UID: v.UID(), FullName: v.FullName(), Revision: v.Revision, Since: v.seen, Warnings: v.Warnings, Conflict: v.clash,
	}
}
