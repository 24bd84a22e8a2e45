package pod

import (
	"maps"
	"slices"
)

func (c Observed) apply(s *State) {
	if s.Spec == nil && c.Identity.UID != "" && s.Identity != c.Identity {
		s.Identity = s.Identity.or(c.Identity)
		s.Version++
	}
	for _, sb := range c.Sandboxes {
		s.seeSandbox(sb)
	}
	for _, ct := range c.Containers {
		s.seeContainer(ct)
	}
	if !c.Partial && c.Began.After(s.LastWrite) {
		s.missing(c)
	}
	s.adopt(c)
}

// or keeps what i knows and takes the rest from o.
func (i Identity) or(o Identity) Identity {
	if i.Name != "" {
		if i.Source == "" {
			i.Source = o.Source
		}
		return i
	}
	return o
}

// missing folds what a fresh look at the whole pod did not show.
func (s *State) missing(c Observed) {
	for _, sb := range s.Sandboxes {
		if !sb.Gone && !slices.ContainsFunc(c.Sandboxes, func(o Sandbox) bool { return o.ID == sb.ID }) {
			sb.Gone, sb.Ready = true, false
			s.seeSandbox(sb)
		}
	}
	for _, ct := range s.Containers {
		if !ct.Gone && !slices.ContainsFunc(c.Containers, func(o Container) bool { return o.ID == ct.ID }) {
			ct.Gone = true
			s.seeContainer(ct)
		}
	}
	if len(s.Unsure) > 0 {
		s.Unsure = nil
		s.Version++
	}
}

// adopt takes a pod that already runs as admitted: running pods are never
// admitted again.
func (s *State) adopt(c Observed) {
	if s.Admission.Done || len(s.Containers) == 0 {
		return
	}
	at := s.Containers[0].CreatedAt
	for _, ct := range s.Containers {
		if ct.CreatedAt.Before(at) {
			at = ct.CreatedAt
		}
	}
	Admitted{At: at}.apply(s)
}

func (s *State) seeSandbox(o Sandbox) {
	for i, sb := range s.Sandboxes {
		if sb.ID != o.ID {
			continue
		}
		if m := sb.merge(o); !m.equal(sb) {
			s.Sandboxes = slices.Clone(s.Sandboxes)
			s.Sandboxes[i] = m
			s.Version++
		}
		return
	}
	if o.Gone {
		return
	}
	s.Sandboxes = append(slices.Clone(s.Sandboxes), o)
	slices.SortStableFunc(s.Sandboxes, func(a, b Sandbox) int {
		if a.Attempt != b.Attempt {
			return int(b.Attempt) - int(a.Attempt)
		}
		return b.CreatedAt.Compare(a.CreatedAt)
	})
	s.Version++
}

func (s *State) seeContainer(o Container) {
	i := slices.IndexFunc(s.Containers, func(c Container) bool { return c.ID == o.ID })
	if i < 0 {
		if o.Gone {
			return
		}
		s.Containers = append(slices.Clone(s.Containers), o)
		slices.SortStableFunc(s.Containers, func(a, b Container) int {
			if a.Attempt != b.Attempt {
				return int(b.Attempt) - int(a.Attempt)
			}
			return b.CreatedAt.Compare(a.CreatedAt)
		})
		s.Version++
	} else {
		m := s.Containers[i].merge(o)
		if m.equal(s.Containers[i]) {
			return
		}
		s.Containers = slices.Clone(s.Containers)
		s.Containers[i] = m
		s.Version++
	}
	s.trim(o.Name)
	s.countCrash(o.Name)
}

// trim keeps at most the two newest containers of a name that are gone.
func (s *State) trim(name string) {
	gone := 0
	s.Containers = slices.DeleteFunc(slices.Clone(s.Containers), func(c Container) bool {
		if c.Name != name || !c.Gone {
			return false
		}
		gone++
		return gone > 2
	})
}

func (s *State) countCrash(name string) {
	c, ok := s.Newest(name)
	if !ok || !c.Ended() {
		return
	}
	old := s.Crashes[name]
	if now := old.exited(c); now != old {
		s.Crashes = maps.Clone(s.Crashes)
		if s.Crashes == nil {
			s.Crashes = make(map[string]Crash, 1)
		}
		s.Crashes[name] = now
	}
}

func (c SandboxStopped) apply(s *State) {
	for _, sb := range s.Sandboxes {
		if sb.ID == c.ID {
			sb.Stopped, sb.Ready = true, false
			s.seeSandbox(sb)
		}
	}
}

func (c SandboxRemoved) apply(s *State) {
	for _, ct := range s.Containers {
		if ct.SandboxID == c.ID && !ct.Gone {
			ct.Gone = true
			s.seeContainer(ct)
		}
	}
	for _, sb := range s.Sandboxes {
		if sb.ID == c.ID {
			sb.Gone, sb.Ready, sb.Stopped = true, false, true
			s.seeSandbox(sb)
		}
	}
}

func (c ContainerRemoved) apply(s *State) {
	for _, ct := range s.Containers {
		if ct.ID == c.ID && !ct.Gone {
			ct.Gone = true
			s.seeContainer(ct)
		}
	}
}
