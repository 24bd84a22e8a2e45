package pod

import (
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amounts are what a container, or a pod, requests and may use of what can be
// changed while it runs. 0 stands for none.
type Amounts struct {
	CPURequest    int64 `json:"cpuRequest,omitempty"` // in thousandths
	CPULimit      int64 `json:"cpuLimit,omitempty"`
	MemoryRequest int64 `json:"memoryRequest,omitempty"` // bytes
	MemoryLimit   int64 `json:"memoryLimit,omitempty"`
}

// Allocation is what the node has given a pod: the pod runs with it, whatever
// its spec asks for meanwhile. It is immutable.
type Allocation struct {
	Pod        Amounts            `json:"pod,omitzero"` // of the pod as a whole, where its spec says so
	Containers map[string]Amounts `json:"containers,omitempty"`
}

// Resize is a change of an allocation that is being carried out.
type Resize struct {
	At   time.Time  `json:"at"`
	From Allocation `json:"from"`
	// Left names the containers that still run with From, with the ID that
	// does; one that is started anew has what it was given.
	Left map[string]string `json:"left,omitempty"`
	// Pod: the pod's cgroup is not done yet.
	Pod bool `json:"pod,omitempty"`
}

// AllocationOf returns what a spec asks for.
func AllocationOf(p *v1.Pod) *Allocation {
	a := &Allocation{Pod: amountsOf(p.Spec.Resources)}
	for _, list := range [2][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if got := amountsOf(&list[i].Resources); got != (Amounts{}) {
				if a.Containers == nil {
					a.Containers = map[string]Amounts{}
				}
				a.Containers[list[i].Name] = got
			}
		}
	}
	return a
}

func (a *Allocation) equal(o *Allocation) bool {
	return a.Pod == o.Pod && maps.Equal(a.Containers, o.Containers)
}

func amountsOf(r *v1.ResourceRequirements) Amounts {
	if r == nil {
		return Amounts{}
	}
	return Amounts{
		CPURequest: r.Requests.Cpu().MilliValue(), CPULimit: r.Limits.Cpu().MilliValue(),
		MemoryRequest: r.Requests.Memory().Value(), MemoryLimit: r.Limits.Memory().Value(),
	}
}

// With returns a pod that asks for what was allocated, and is otherwise like
// p. Containers that the allocation does not know ask for what they do.
func (a *Allocation) With(p *v1.Pod, known func(container string) bool) *v1.Pod {
	p = p.DeepCopy()
	if p.Spec.Resources != nil || a.Pod != (Amounts{}) {
		if p.Spec.Resources == nil {
			p.Spec.Resources = &v1.ResourceRequirements{}
		}
		a.Pod.into(p.Spec.Resources)
	}
	for _, list := range [2][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if known(list[i].Name) {
				a.Containers[list[i].Name].into(&list[i].Resources)
			}
		}
	}
	return p
}

// into writes the amounts that differ, so that the others keep their spelling.
func (a Amounts) into(r *v1.ResourceRequirements) {
	is := amountsOf(r)
	put := func(list *v1.ResourceList, name v1.ResourceName, q *resource.Quantity, same bool) {
		switch {
		case same:
		case q.IsZero():
			delete(*list, name)
		default:
			if *list == nil {
				*list = v1.ResourceList{}
			}
			(*list)[name] = *q
		}
	}
	cpu := func(n int64) *resource.Quantity { return resource.NewMilliQuantity(n, resource.DecimalSI) }
	bytes := func(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.BinarySI) }
	put(&r.Requests, v1.ResourceCPU, cpu(a.CPURequest), a.CPURequest == is.CPURequest)
	put(&r.Limits, v1.ResourceCPU, cpu(a.CPULimit), a.CPULimit == is.CPULimit)
	put(&r.Requests, v1.ResourceMemory, bytes(a.MemoryRequest), a.MemoryRequest == is.MemoryRequest)
	put(&r.Limits, v1.ResourceMemory, bytes(a.MemoryLimit), a.MemoryLimit == is.MemoryLimit)
}

// take makes spec the pod's. From its admission on a pod has the resources that
// it was given, and what the spec asks for instead is kept beside it.
func (s *State) take(spec *Spec) {
	if s.Spec == spec || s.Spec != nil && s.Spec.from == spec {
		return
	}
	if s.Admission.OK {
		spec = s.allocated(spec)
	}
	s.set(&s.Spec, spec)
}

func (s *State) allocated(spec *Spec) *Spec {
	asked := AllocationOf(spec.Pod)
	if s.Allocation == nil {
		if s.Allocation = asked; s.Spec != nil {
			s.Allocation = AllocationOf(s.Spec.Pod)
		}
	}
	have := s.Allocation
	known := func(name string) bool { return s.Spec == nil || specOf(s.Spec.Pod, name) != nil }
	with := have.With(spec.Pod, known)
	if AllocationOf(with).equal(asked) {
		s.Allocation = asked
		return spec
	}
	s.Allocation = AllocationOf(with)
	out := *spec
	out.Pod, out.Asked, out.from = with, spec.Pod, spec
	return &out
}

func specOf(p *v1.Pod, name string) *v1.Container {
	for _, list := range [2][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// Resized: the node gives the pod what Asked asks for.
type Resized struct {
	Asked *v1.Pod
	At    time.Time
}

func (c Resized) apply(s *State) {
	if c.Asked == nil || s.Spec == nil || s.Spec.Asked != c.Asked || s.Allocation == nil {
		return // it asks for something else by now
	}
	r := &Resize{At: c.At, From: *s.Allocation, Pod: true, Left: map[string]string{}}
	if was := s.Resize; was != nil { // what is not done of it goes on from there
		r.From = was.From
		maps.Copy(r.Left, was.Left)
	}
	spec := *s.Spec
	spec.Pod, spec.Asked = c.Asked, nil
	s.Allocation = AllocationOf(spec.Pod)
	for _, list := range [2][]v1.Container{spec.Pod.Spec.InitContainers, spec.Pod.Spec.Containers} {
		for i := range list {
			name := list[i].Name
			if ct, ok := s.Newest(name); ok && !ct.Gone && ct.State != Exited && s.Allocation.of(name) != r.From.of(name) {
				r.Left[name] = ct.ID
			}
		}
	}
	s.Spec, s.Resize = &spec, r
	s.Version++
}

// of is what a container has, with what it takes from its pod.
func (a *Allocation) of(name string) Amounts {
	out := a.Containers[name]
	if out.CPULimit == 0 {
		out.CPULimit = a.Pod.CPULimit
	}
	if out.MemoryLimit == 0 {
		out.MemoryLimit = a.Pod.MemoryLimit
	}
	return out
}

// Actuated: a container, or with an empty ID the pod's cgroup, has what it was
// given since the resize that began at At.
type Actuated struct {
	At   time.Time
	Name string
	ID   string
}

func (c Actuated) apply(s *State) {
	if s.Resize == nil || !s.Resize.At.Equal(c.At) {
		return
	}
	r := *s.Resize
	if c.ID == "" {
		r.Pod = false
	} else if r.Left[c.Name] == c.ID {
		r.Left = maps.Clone(r.Left)
		delete(r.Left, c.Name)
	}
	s.Resize = &r
	s.Version++
}

// MadeWith: a container was made, or started, with that allocation. It may not
// be the one that the pod has by now.
type MadeWith struct {
	Name string
	ID   string
	With *Allocation
	At   time.Time
}

func (c MadeWith) apply(s *State) {
	if c.With == nil || s.Allocation == nil || c.With.of(c.Name) == s.Allocation.of(c.Name) {
		return
	}
	r := Resize{At: c.At, From: *c.With}
	if s.Resize != nil {
		r = *s.Resize
	}
	if r.Left = maps.Clone(r.Left); r.Left == nil {
		r.Left = map[string]string{}
	}
	r.Left[c.Name] = c.ID
	s.Resize = &r
	s.Version++
}

// settleResize drops the containers that do not run any more: what is started
// in their place has what it was given.
func (s *State) settleResize() {
	if s.Resize == nil {
		return
	}
	left := maps.Clone(s.Resize.Left)
	for name, id := range left {
		// One that is not known may not have been looked at yet.
		if ct, ok := s.Newest(name); ok && (ct.ID != id || ct.Gone || ct.State == Exited) {
			delete(left, name)
		}
	}
	switch {
	case len(left) == 0 && !s.Resize.Pod:
		s.Resize = nil
	case len(left) != len(s.Resize.Left):
		r := *s.Resize
		r.Left, s.Resize = left, &r
	default:
		return
	}
	s.Version++
}

// MustRestart reports whether a container has to be started anew to have what
// it was given: one of the amounts that differ has the policy RestartContainer.
func (r *Resize) MustRestart(c *v1.Container, to *Allocation) bool {
	is, was := to.of(c.Name), r.From.of(c.Name)
	cpu := is.CPULimit != was.CPULimit || is.CPURequest != was.CPURequest
	memory := is.MemoryLimit != was.MemoryLimit || is.MemoryRequest != was.MemoryRequest
	for _, p := range c.ResizePolicy {
		if p.RestartPolicy == v1.RestartContainer && (p.ResourceName == v1.ResourceCPU && cpu || p.ResourceName == v1.ResourceMemory && memory) {
			return true
		}
	}
	return false
}
