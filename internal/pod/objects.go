package pod

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Identity is what the runtime's labels and annotations say about whose a
// sandbox or container is.
type Identity struct {
	Name      string
	Namespace string
	UID       types.UID
	Source    string // annotation kubernetes.io/config.source; empty: unknown
}

// FullName returns name_namespace, which only one static pod at a time may hold.
func (i Identity) FullName() string { return i.Name + "_" + i.Namespace }

// Sandbox is what is known about a pod sandbox. It only ever moves
// ready → not ready → gone.
type Sandbox struct {
	ID          string
	Attempt     uint32
	CreatedAt   time.Time
	Ready       bool
	Gone        bool
	Stopped     bool     // StopPodSandbox has succeeded: network and mounts are released
	HostNetwork bool     // network namespace of the node
	IPs         []string // primary first; kept when it stops
	Detailed    bool     // the runtime's full status is folded in, not a list row only
	// Seen is the end of the first look that showed it: one that began
	// earlier tells nothing by not showing it.
	Seen time.Time
	// Missed is when the look ended that did not show it, so that it counts as
	// gone; zero if it was removed, or is there. A look that began later and
	// shows it is right.
	Missed time.Time
}

// merge folds a newer or older observation into s; order does not matter.
func (s Sandbox) merge(o Sandbox) Sandbox {
	if o.Gone && !s.Gone {
		s.Missed = o.Missed
	}
	s.Ready = s.Ready && o.Ready
	s.Gone = s.Gone || o.Gone
	s.Stopped = s.Stopped || o.Stopped
	if o.Detailed && !s.Detailed {
		s.HostNetwork, s.Detailed = o.HostNetwork, true
	}
	if len(o.IPs) > 0 {
		s.IPs = o.IPs
	}
	s.Seen = earlier(s.Seen, o.Seen)
	return s
}

// earlier returns the earlier of two times, where zero is no time.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

func (s Sandbox) equal(o Sandbox) bool {
	return slices.Equal(s.IPs, o.IPs) && s.ID == o.ID && s.Attempt == o.Attempt && s.CreatedAt.Equal(o.CreatedAt) && s.Ready == o.Ready &&
		s.Gone == o.Gone && s.Stopped == o.Stopped && s.HostNetwork == o.HostNetwork && s.Detailed == o.Detailed &&
		s.Seen.Equal(o.Seen) && s.Missed.Equal(o.Missed)
}

// ContainerState is ordered: a container only ever moves up.
type ContainerState uint8

// The states of a container.
const (
	Created ContainerState = iota
	Running
	Exited
)

// Container is what is known about one container. Its first exit is never
// changed by a later observation.
type Container struct {
	ID        string
	Name      string
	Attempt   uint32 // the CRI attempt, which is the restart count
	SandboxID string
	State     ContainerState
	Unknown   bool // the runtime does not know its state
	Gone      bool // the runtime no longer has it
	Hooked    bool // this agent made it, with a postStart hook: see AnnotationPostStart
	Reset     bool // removed because all containers of the pod start anew
	Unkept    bool // the node wants its room back
	Image     string
	ImageRef  string // digest reference as the runtime reports it
	ImageID   string
	Hash      string        // annotation io.kubernetes.container.hash
	Grace     time.Duration // annotation io.kubernetes.pod.terminationGracePeriod; 0: unknown
	CreatedAt time.Time
	StartedAt time.Time
	LogPath   string
	Exit      Exit
	Told      *Told     `json:",omitempty"`
	Detailed  bool      // the runtime's full status for this State is folded in
	Seen      time.Time // as for a sandbox
	Missed    time.Time // as for a sandbox
}

// Exit is how a container ended.
type Exit struct {
	Code       int32
	Reason     string
	Message    string
	FinishedAt time.Time
}

// Live reports whether the container may have a process.
func (c Container) Live() bool { return !c.Gone && (c.State == Running || c.Unknown) }

// Spare reports whether the runtime has it for no other reason than that
// somebody may want to look at it: it has ended, and all is known of that.
func (c Container) Spare() bool { return !c.Gone && !c.Live() && c.Ended() }

// Lost reports whether the container went away while it ran.
func (c Container) Lost() bool { return c.Gone && c.State == Running }

// Vague reports whether the container exited and it can still be learnt how.
func (c Container) Vague() bool { return c.State == Exited && !c.Detailed && !c.Gone }

// Ended reports whether the container ran, or tried to, and is over, and all
// is known that will ever be known of its end.
func (c Container) Ended() bool { return (c.State == Exited && !c.Vague()) || c.Lost() }

// Succeeded reports whether it is known to have ended well. A container killed
// for memory failed whatever its code says.
func (c Container) Succeeded() bool {
	return c.State == Exited && c.Detailed && c.Exit.Code == 0 && c.Exit.Reason != "OOMKilled"
}

// merge folds another observation of the same container into c.
func (c Container) merge(o Container) Container {
	if o.Gone && !c.Gone {
		c.Missed = o.Missed
	}
	c.Gone = c.Gone || o.Gone
	c.Reset = c.Reset || o.Reset
	c.Unkept = c.Unkept || o.Unkept
	if o.State < c.State {
		return c.learn(o)
	}
	better := o.State > c.State || (o.Detailed && !c.Detailed)
	c.Unknown = o.Unknown
	if better {
		gone, reset, unkept, missed := c.Gone, c.Reset, c.Unkept, c.Missed
		c = o.learn(c)
		c.Gone, c.Reset, c.Unkept, c.Missed = gone, reset, unkept, missed
	}
	return c.learn(o)
}

// learn fills what c lacks from o.
func (c Container) learn(o Container) Container {
	if c.StartedAt.IsZero() {
		c.StartedAt = o.StartedAt
	}
	if c.CreatedAt.IsZero() {
		c.CreatedAt = o.CreatedAt
	}
	for _, f := range []struct{ have, other *string }{
		{&c.Image, &o.Image},
		{&c.ImageRef, &o.ImageRef},
		{&c.ImageID, &o.ImageID},
		{&c.Hash, &o.Hash},
		{&c.LogPath, &o.LogPath},
		{&c.SandboxID, &o.SandboxID},
	} {
		if *f.have == "" {
			*f.have = *f.other
		}
	}
	if c.Grace == 0 {
		c.Grace = o.Grace
	}
	c.Hooked = c.Hooked || o.Hooked
	c.Told = c.Told.or(o.Told)
	c.Seen = earlier(c.Seen, o.Seen)
	return c
}

func (c Container) equal(o Container) bool {
	times := c.CreatedAt.Equal(o.CreatedAt) && c.StartedAt.Equal(o.StartedAt) && c.Exit.FinishedAt.Equal(o.Exit.FinishedAt) &&
		c.Seen.Equal(o.Seen) && c.Missed.Equal(o.Missed) && c.Told.equal(o.Told)
	c.Told, o.Told = nil, nil
	c.CreatedAt, c.StartedAt, c.Exit.FinishedAt, c.Seen, c.Missed = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
	o.CreatedAt, o.StartedAt, o.Exit.FinishedAt, o.Seen, o.Missed = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return times && c == o
}
