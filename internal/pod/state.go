package pod

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Spec is a pod as a source wants it. Pod is shared and must not be changed.
type Spec struct {
	Pod    *v1.Pod
	Source string
	Path   string // the manifest, for sources that have one
	Sum    uint64 // hash of what the user wrote: another spec has another sum
	Seen   time.Time
	// Asked is the pod as the source wants it where that asks for resources
	// which the node has not given it; Pod has those that it was given. nil:
	// they are the same.
	Asked *v1.Pod

	from *Spec // the source's, of which this is a copy
}

// Static reports whether the pod comes from a manifest rather than the API.
func (s *Spec) Static() bool { return s.Source != SourceAPI }

// Removal says that the pod's source no longer wants it.
type Removal struct {
	At    time.Time
	Grace time.Duration // from At until KILL
}

// Deadline is when every container must have been killed.
func (r Removal) Deadline() time.Time { return r.At.Add(r.Grace) }

// Admission is the node's decision about the pod; once made it stands.
type Admission struct {
	Done    bool
	OK      bool
	Reason  string // of a rejection
	Message string
	At      time.Time
}

// Image is what a look-up or a pull found for an image reference.
type Image struct {
	ID    string // empty: not on the node
	UID   *int64 // the image's numeric user
	User  string // the image's user when it is a name
	Epoch int    // grows when the runtime says that the image went away
}

// Crash counts the exits of one container in a row, for the crash-loop back-off.
type Crash struct {
	ID    string // the container that exited last
	Hash  string // its image and name: another hash starts from zero
	Exits int    // since the last run that was long enough to count as healthy
}

// State is what is known about one pod, or one chore of the node. It is immutable.
type State struct {
	Identity    Identity
	Incarnation int64 // first sight in nanoseconds; tells apart lives of one UID
	Phase       Phase

	Volumes   []string // names of those that only an earlier spec of this life had
	Spec      *Spec    // nil: found in the runtime or in a state file only
	Next      *Spec    // the UID came back while it was ending
	Removal   *Removal
	Verdict   *Verdict // the node ends the pod
	Admission Admission
	// Allocation is what an admitted pod has been given; nil: not known yet.
	Allocation *Allocation
	Resize     *Resize   // what of it is not carried out yet
	StartTime  time.Time // when the agent first accepted the pod
	Born       time.Time // of a life that followed another: looks that began before it show that one

	Room       Room        // without a spec: from the state file
	IPs        []string    // of the last sandbox, from the state file
	Sandboxes  []Sandbox   // newest first; at most two gone ones are kept
	Containers []Container // newest first per name; at most two gone ones are kept per name
	Images     map[string]Image
	Crashes    map[string]Crash  // by container name
	Restarts   map[string]uint32 // next attempt by container name, from the state file

	Probes map[ProbeKey]ProbeState
	Hooks  map[HookKey]Hook // of containers that are known

	Unsure    []string  // objects whose last write had no clear end
	LastWrite time.Time // end of the last write to any object of the pod
	Chore     *Chore    // of a chore of the node, which has nothing else of the above but its name
	Version   uint64    // grows with every change
	Ends      uint64    // how many ended stages are folded in, over all lives of the UID
}

// Full name of the pod; see Identity.
func (s *State) FullName() string { return s.Identity.FullName() }

// Pod returns the spec's pod, or nil.
func (s *State) Pod() *v1.Pod {
	if s.Spec == nil {
		return nil
	}
	return s.Spec.Pod
}

// Source returns the source that the pod belongs to, or "".
func (s *State) Source() string {
	if s.Spec != nil {
		return s.Spec.Source
	}
	return s.Identity.Source
}

// UID returns the pod's UID.
func (s *State) UID() types.UID { return s.Identity.UID }

// Sandbox returns the newest sandbox that the runtime still has, by attempt
// and then by time of creation.
func (s *State) Sandbox() (Sandbox, bool) {
	for _, sb := range s.Sandboxes {
		if !sb.Gone {
			return sb, true
		}
	}
	return Sandbox{}, false
}

// Newest returns the newest container of that name, whatever became of it.
func (s *State) Newest(name string) (Container, bool) {
	for _, c := range s.Containers {
		if c.Name == name {
			return c, true
		}
	}
	return Container{}, false
}

// NewestIn returns the newest container of that name in one sandbox; none that
// was reset.
func (s *State) NewestIn(name, sandbox string) (Container, bool) {
	for _, c := range s.Containers {
		if c.Name == name && c.SandboxID == sandbox && !c.Reset {
			return c, true
		}
	}
	return Container{}, false
}

// Previous returns the container of that name before the newest one.
func (s *State) Previous(name string) (Container, bool) {
	seen := false
	for _, c := range s.Containers {
		if c.Name != name {
			continue
		}
		if seen {
			return c, true
		}
		seen = true
	}
	return Container{}, false
}

// NextAttempt returns the attempt number for the next container of that name.
func (s *State) NextAttempt(name string) uint32 {
	next := s.Restarts[name]
	if c, ok := s.Newest(name); ok {
		next = max(next, c.Attempt+1)
	}
	return next
}

// Grace returns the time the pod's processes get to end by themselves: the
// spec's, else what its containers were made with, else the API's default of 30 s.
func (s *State) Grace() time.Duration {
	if p := s.Pod(); p != nil && p.Spec.TerminationGracePeriodSeconds != nil {
		// A grace of 0 in a spec counts as 1 s (kubelet v1.37.2 does the same).
		return max(time.Second, time.Duration(*p.Spec.TerminationGracePeriodSeconds)*time.Second)
	}
	for _, c := range s.Containers {
		if c.Grace > 0 {
			return c.Grace
		}
	}
	return 30 * time.Second
}

// Alive reports whether the runtime shows something of the pod that runs.
func (s *State) Alive() bool {
	return slices.ContainsFunc(s.Containers, Container.Live) ||
		slices.ContainsFunc(s.Sandboxes, func(sb Sandbox) bool { return sb.Ready && !sb.Gone })
}

// HasRemains reports whether the runtime has, or may have, anything of the pod.
func (s *State) HasRemains() bool {
	for _, sb := range s.Sandboxes {
		if !sb.Gone {
			return true
		}
	}
	for _, c := range s.Containers {
		if !c.Gone {
			return true
		}
	}
	return len(s.Unsure) > 0
}
