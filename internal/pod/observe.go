package pod

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

func (c Observed) apply(s *State) {
	if !c.Began.IsZero() && c.Began.Before(s.Born) {
		return
	}
	if s.Spec == nil && c.Identity.UID != "" && s.Identity != c.Identity {
		s.Identity = s.Identity.or(c.Identity)
		s.Version++
	}
	fresh := !c.Partial && c.Began.After(s.LastWrite)
	if fresh {
		s.revive(c)
	}
	for _, sb := range c.Sandboxes {
		sb.Seen = c.Ended
		s.seeSandbox(sb)
	}
	for _, ct := range oldestFirst(c.Containers) {
		ct.Seen, ct.Told = c.Ended, ct.Told.seen(c.Ended)
		if !fresh {
			ct.Unknown = s.unknown(ct)
		}
		s.seeContainer(ct)
	}
	if fresh {
		s.missing(c)
	}
	s.adopt()
}

// oldestFirst returns the containers in the order they were made, so that
// exits are counted alike however the runtime lists them.
func oldestFirst(list []Container) []Container {
	byAttempt := func(a, b Container) int { return cmp.Compare(a.Attempt, b.Attempt) }
	if slices.IsSortedFunc(list, byAttempt) {
		return list
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, byAttempt)
	return list
}

// unknown is what an old look may say about a container's state being
// unknown: nothing, once the container is known.
func (s *State) unknown(o Container) bool {
	for _, ct := range s.Containers {
		if ct.ID == o.ID {
			return ct.Unknown
		}
	}
	return o.Unknown
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

// revive takes for there again what an earlier look had missed: a runtime that
// was just started may list less than it has.
func (s *State) revive(c Observed) {
	for i := range s.Sandboxes {
		sb := &s.Sandboxes[i]
		shown := func(o Sandbox) bool { return o.ID == sb.ID }
		if missed(sb.Gone, sb.Missed, c) && slices.ContainsFunc(c.Sandboxes, shown) {
			s.Sandboxes = slices.Clone(s.Sandboxes)
			sb = &s.Sandboxes[i]
			sb.Gone, sb.Missed, sb.Seen, sb.Ready = false, time.Time{}, c.Ended, !sb.Stopped
			s.Version++
		}
	}
	for i := range s.Containers {
		ct := &s.Containers[i]
		shown := func(o Container) bool { return o.ID == ct.ID }
		if missed(ct.Gone, ct.Missed, c) && slices.ContainsFunc(c.Containers, shown) {
			s.Containers = slices.Clone(s.Containers)
			ct = &s.Containers[i]
			ct.Gone, ct.Missed, ct.Seen = false, time.Time{}, c.Ended
			s.Version++
		}
	}
}

func missed(gone bool, at time.Time, c Observed) bool {
	return gone && !at.IsZero() && at.Before(c.Began)
}

// missing folds what a fresh look at the whole pod did not show, though it was
// there before the look began.
func (s *State) missing(c Observed) {
	ended := c.Ended
	if ended.IsZero() {
		ended = c.Began
	}
	for _, sb := range s.Sandboxes {
		if !sb.Gone && sb.Seen.Before(c.Began) && !slices.ContainsFunc(c.Sandboxes, func(o Sandbox) bool { return o.ID == sb.ID }) {
			sb.Gone, sb.Ready, sb.Missed = true, false, ended
			s.seeSandbox(sb)
		}
	}
	for _, ct := range s.Containers {
		if !ct.Gone && ct.Seen.Before(c.Began) && !slices.ContainsFunc(c.Containers, func(o Container) bool { return o.ID == ct.ID }) {
			ct.Gone, ct.Missed = true, ended
			s.seeContainer(ct)
		}
	}
	if slices.ContainsFunc(s.Unsure, func(o string) bool { return !s.vague(o) }) {
		s.Unsure = nil
		s.Version++
	}
}

// vague reports whether id is a container that exited nobody knows how.
func (s *State) vague(id string) bool {
	return slices.ContainsFunc(s.Containers, func(c Container) bool { return c.ID == id && c.Vague() })
}

// blur keeps in Unsure the containers that exited nobody knows how: whether
// they are to be started again cannot be decided before they are looked at. A
// pod that is being deleted needs no such look.
func (s *State) blur() {
	needed := s.Spec != nil && s.Removal == nil
	for i := range s.Containers {
		c := &s.Containers[i]
		vague := needed && c.Vague()
		switch listed := contains(s.Unsure, c.ID); {
		case vague && !listed:
			s.Unsure = append(s.Unsure[:len(s.Unsure):len(s.Unsure)], c.ID)
			s.Version++
		case listed && !vague:
			s.Unsure = slices.DeleteFunc(slices.Clone(s.Unsure), func(o string) bool { return o == c.ID })
			s.Version++
		}
	}
}

// adopt takes a pod that already runs as admitted: running pods are never
// admitted again.
func (s *State) adopt() {
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
			s.trimSandboxes()
			s.Version++
		}
		return
	}
	if o.Gone {
		return
	}
	s.Sandboxes = append(slices.Clone(s.Sandboxes), o)
	slices.SortStableFunc(s.Sandboxes, func(a, b Sandbox) int {
		return cmp.Or(cmp.Compare(b.Attempt, a.Attempt), b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	s.Version++
}

// trimSandboxes keeps the newest sandboxes that are gone. The slice is ours.
func (s *State) trimSandboxes() {
	gone := 0
	s.Sandboxes = slices.DeleteFunc(s.Sandboxes, func(sb Sandbox) bool {
		if sb.Gone {
			gone++
		}
		return sb.Gone && gone > keptGone
	})
}

func (s *State) seeContainer(o Container) {
	i := slices.IndexFunc(s.Containers, func(c Container) bool { return c.ID == o.ID })
	if i < 0 {
		if o.Gone {
			return
		}
		s.Containers = append(slices.Clone(s.Containers), o)
		slices.SortStableFunc(s.Containers, func(a, b Container) int {
			return cmp.Or(cmp.Compare(b.Attempt, a.Attempt), b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
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

// keptGone is how many sandboxes, and containers of each name, are kept after
// the runtime has lost them: the newest, and the one before it for lastState.
const keptGone = 2

// trim keeps the newest containers of a name that are gone.
func (s *State) trim(name string) {
	gone := 0
	s.Containers = slices.DeleteFunc(slices.Clone(s.Containers), func(c Container) bool {
		if c.Name != name || !c.Gone {
			return false
		}
		gone++
		return gone > keptGone
	})
}

func (s *State) countCrash(name string) {
	c, ok := s.Newest(name)
	if !ok || !c.Ended() || c.Reset {
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

// Reset: these containers were removed so that all of the pod start anew, from
// the first init container on and with no crash-loop back-off. To the pod it is
// as if none of them had been there, but for the number of restarts and the last
// state that is shown.
type Reset struct{ IDs []string }

func (c Reset) apply(s *State) {
	for _, ct := range s.Containers {
		if contains(c.IDs, ct.ID) && !ct.Reset {
			ct.Gone, ct.Reset = true, true
			s.seeContainer(ct)
		}
	}
	s.Crashes = nil
}

// Unkept: the node wants the room of these containers back. Those that have
// ended are removed; what is known of their ends stays.
type Unkept struct{ IDs []string }

func (c Unkept) apply(s *State) {
	for _, ct := range s.Containers {
		if contains(c.IDs, ct.ID) && ct.Spare() && !ct.Unkept {
			ct.Unkept = true
			s.seeContainer(ct)
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
