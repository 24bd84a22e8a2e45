package file

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/manifest"
)

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
