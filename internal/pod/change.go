package pod

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Change is something learnt about a pod. The set is closed.
type Change interface{ apply(s *State) }

// Facts are changes that were learnt together.
type Facts []Change

// SpecSet: a source wants the pod like this.
type SpecSet struct{ Spec *Spec }

// SpecGone: that source no longer wants the pod.
type SpecGone struct {
	Source string
	At     time.Time
}

// Claimed: a pod without a spec belongs to a source that has told all it
// knows, so nobody wants it.
type Claimed struct{ At time.Time }

// Restored: the state file of an earlier run of the agent.
type Restored struct{ Record Record }

// Observed is a look at the runtime. Unless Partial it shows all that the
// runtime has of the pod, and what is missing in it is gone if the look began
// after the last write to the pod had ended.
type Observed struct {
	Began      time.Time
	Ended      time.Time // when it was so at the latest; zero: Began does not matter to what is there
	Identity   Identity
	Sandboxes  []Sandbox
	Containers []Container
	Partial    bool
}

// Wrote: a write to an object of the pod has ended; Unsure without a clear answer.
type Wrote struct {
	Object string
	At     time.Time
	Unsure bool
}

// SandboxStopped: StopPodSandbox succeeded.
type SandboxStopped struct{ ID string }

// SandboxRemoved: RemovePodSandbox succeeded; its containers are gone with it.
type SandboxRemoved struct{ ID string }

// ContainerRemoved: RemoveContainer succeeded.
type ContainerRemoved struct{ ID string }

// ImageFound: what a look-up or a pull found for an image reference; an Image
// without ID is not on the node.
type ImageFound struct {
	Ref   string
	Image Image // Epoch is ignored
	// By is the pod whose stage did the pull that others joined; empty after
	// a look-up.
	By types.UID
}

// ImageGone: the runtime says that an image which was found is not there.
type ImageGone struct{ Ref string }

// Admitted: the node has room and took the pod.
type Admitted struct{ At time.Time }

// Rejected: the node does not take the pod, for good.
type Rejected struct {
	Reason  string
	Message string
	At      time.Time
}

// Settled: all that a completed pod had running or mounted was taken down.
type Settled struct{}

// Gone: nothing of the pod is left.
type Gone struct{ At time.Time }

// RuntimeStatus: what the container runtime says about itself. It is about no
// pod; it is what the topics of the runtime carry.
type RuntimeStatus struct {
	Ready        bool
	NetworkReady bool
	Reason       string // why it is not ready, as the runtime words it
	Message      string
	Since        time.Time // of the last change of the above
	Features     RuntimeFeatures
}

// RuntimeFeatures is what the container runtime says it can do.
type RuntimeFeatures struct {
	Known        bool // it was asked; else all below is unknown, and false
	StrictGroups bool // supplementalGroupsPolicy Strict
	Handlers     map[string]HandlerFeatures
}

// HandlerFeatures is what one of the runtime's handlers can do; the default
// one has the empty name.
type HandlerFeatures struct {
	RecursiveReadOnly bool
	UserNamespaces    bool
}

// Equal reports whether both say the same.
func (r RuntimeStatus) Equal(o RuntimeStatus) bool {
	return r.Ready == o.Ready && r.NetworkReady == o.NetworkReady && r.Reason == o.Reason && r.Message == o.Message &&
		r.Since.Equal(o.Since) && r.Features.Known == o.Features.Known && r.Features.StrictGroups == o.Features.StrictGroups &&
		maps.Equal(r.Features.Handlers, o.Features.Handlers)
}

func (RuntimeStatus) apply(*State) {}

// StageEnded: a stage of the pod's graph has ended, with what it learnt.
type StageEnded struct{ Facts Facts }

func (c StageEnded) apply(s *State) {
	for _, f := range c.Facts {
		f.apply(s)
	}
	s.Version++ // the memo moved: the pod is looked at again
	s.Ends++
}

func (c Facts) apply(s *State) {
	for _, f := range c {
		f.apply(s)
	}
}

func (c SpecSet) apply(s *State) {
	switch {
	case s.Phase == Forgotten:
		s.begin(c.Spec, c.Spec.Seen)
		return
	case s.Removal != nil:
		s.set(&s.Next, c.Spec)
		return
	case s.Spec == c.Spec:
		return
	}
	p := c.Spec.Pod
	s.drop(p)
	s.take(c.Spec)
	s.Identity = Identity{Name: p.Name, Namespace: p.Namespace, UID: p.UID, Source: c.Spec.Source}
	if s.Incarnation == 0 {
		s.Incarnation = c.Spec.Seen.UnixNano()
	}
}

// drop notes the volumes that a new spec lacks: they may be there, or under way.
func (s *State) drop(p *v1.Pod) {
	if s.Spec == nil {
		return
	}
	for i := range s.Spec.Pod.Spec.Volumes {
		name := s.Spec.Pod.Spec.Volumes[i].Name
		has := func(v v1.Volume) bool { return v.Name == name }
		if !slices.ContainsFunc(p.Spec.Volumes, has) && !contains(s.Volumes, name) {
			s.Volumes = append(s.Volumes[:len(s.Volumes):len(s.Volumes)], name)
		}
	}
}

func (s *State) set(at **Spec, spec *Spec) {
	if *at != spec {
		*at = spec
		s.Version++
	}
}

func (c SpecGone) apply(s *State) {
	switch {
	case s.Next != nil && s.Next.Source == c.Source:
		s.set(&s.Next, nil)
	case s.Removal == nil && s.Spec != nil && s.Spec.Source == c.Source:
		s.remove(c.At)
	}
}

func (c Claimed) apply(s *State) {
	if s.Spec == nil && s.Removal == nil {
		s.remove(c.At)
	}
}

func (s *State) remove(at time.Time) {
	grace := s.Grace()
	if s.Verdict != nil {
		grace = max(0, min(grace, s.KillBy().Sub(at))) // a removal makes no teardown longer
	}
	s.Removal = &Removal{At: at, Grace: grace}
	s.Version++
}

func (c Wrote) apply(s *State) {
	if c.At.After(s.LastWrite) {
		s.LastWrite = c.At
	}
	if c.Unsure && !contains(s.Unsure, c.Object) {
		s.Unsure = append(s.Unsure[:len(s.Unsure):len(s.Unsure)], c.Object)
	}
	s.Version++
}

func (c ImageFound) apply(s *State) {
	c.Image.Epoch = s.Images[c.Ref].Epoch
	s.setImage(c.Ref, c.Image)
}

func (c ImageGone) apply(s *State) {
	s.setImage(c.Ref, Image{Epoch: s.Images[c.Ref].Epoch + 1})
}

func (s *State) setImage(ref string, image Image) {
	images := make(map[string]Image, len(s.Images)+1)
	maps.Copy(images, s.Images)
	images[ref] = image
	s.Images = images
	s.Version++
}

func (c Admitted) apply(s *State) {
	if !s.Admission.Done {
		s.Admission = Admission{Done: true, OK: true, At: c.At}
		if s.Spec != nil && s.Allocation == nil {
			s.Allocation = AllocationOf(s.Spec.Pod)
		}
		s.start(c.At)
	}
}

func (c Rejected) apply(s *State) {
	if !s.Admission.Done {
		s.Admission = Admission{Done: true, Reason: c.Reason, Message: c.Message, At: c.At}
		s.start(c.At)
	}
}

func (s *State) start(at time.Time) {
	if s.StartTime.IsZero() {
		s.StartTime = at
	}
	s.Version++
}

func (c Settled) apply(s *State) {
	if s.Phase == Finishing {
		s.Phase = Finished
		s.Version++
	}
}

// Gone ends this life of the UID; one that came back meanwhile begins anew.
func (c Gone) apply(s *State) {
	if s.Next != nil {
		s.begin(s.Next, c.At)
		return
	}
	s.Phase = Forgotten
	s.Version++
}

// begin starts another life of the UID.
func (s *State) begin(spec *Spec, at time.Time) {
	*s = State{Version: s.Version + 1, Ends: s.Ends, Incarnation: at.UnixNano(), Born: at}
	SpecSet{spec}.apply(s)
}

func contains(list []string, v string) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}
