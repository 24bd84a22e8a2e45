package pod

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Told is what the runtime tells of a container beside its life. It is
// immutable, and may change while the container runs: the newest look counts.
type Told struct {
	At          time.Time `json:"-"` // of the look
	CPURequest  int64     `json:"cpuRequest,omitempty"`
	CPULimit    int64     `json:"cpuLimit,omitempty"` // in thousandths; 0, as below: it does not tell
	MemoryLimit int64     `json:"memoryLimit,omitempty"`

	User       *v1.LinuxContainerUser `json:"user,omitempty"`
	StopSignal v1.Signal              `json:"stopSignal,omitempty"`
}

// seen returns t as of a look that ended at at.
func (t *Told) seen(at time.Time) *Told {
	if t == nil || t.At.Equal(at) {
		return t
	}
	out := *t
	out.At = at
	return &out
}

// or returns the newer of two.
func (t *Told) or(o *Told) *Told {
	switch {
	case o == nil:
		return t
	case t == nil || o.At.After(t.At) && !t.equal(o):
		return o
	}
	return t
}

// equal reports whether both tell the same, whenever.
func (t *Told) equal(o *Told) bool {
	if t == nil || o == nil {
		return t == o
	}
	return t.CPURequest == o.CPURequest && t.CPULimit == o.CPULimit && t.MemoryLimit == o.MemoryLimit &&
		t.StopSignal == o.StopSignal && sameUser(t.User, o.User)
}

func sameUser(a, b *v1.LinuxContainerUser) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && a.GID == b.GID && slices.Equal(a.SupplementalGroups, b.SupplementalGroups)
}
