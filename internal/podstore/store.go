// Package podstore holds what many pods or readers share: a read-only view of
// every pod, the values of topics, and the state files. One writer, the step
// loop, puts; anybody reads.
package podstore

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// View is one pod, or one chore of the node, as of its last step. Nothing in it may be changed.
type View struct {
	Key    pod.Key
	State  *pod.State
	Memo   dag.Memo
	Status *v1.PodStatus // nil without a spec
}

// Store keeps the views. Its methods may be called concurrently and never block.
type Store struct {
	mu      sync.RWMutex
	pods    map[pod.Key]View
	chores  map[pod.Key]View
	names   map[string][]pod.Key // static pods and remains by full name, in order of first sight
	synced  map[string]bool
	runtime pod.RuntimeStatus
}

// New returns an empty store.
func New() *Store {
	return &Store{
		pods: make(map[pod.Key]View), chores: make(map[pod.Key]View), names: make(map[string][]pod.Key), synced: make(map[string]bool),
	}
}

// Topics that the store keeps the values of.
const TopicNetwork = "net-ready"

// TopicName is changed when who holds, or held, a full name may have changed.
func TopicName(fullName string) string { return "name/" + fullName }

// Put takes a view in, in place of the key's last one. changed names the
// topics whose value changed with it.
func (s *Store) Put(v View) (changed []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, had := s.pods[v.Key]
	s.pods[v.Key] = v
	name := v.State.FullName()
	if had && old.State.FullName() != name {
		s.unname(old)
		changed = append(changed, TopicName(old.State.FullName()))
		had = false
	}
	if !had {
		s.names[name] = append(s.names[name], v.Key)
	}
	if !had || old.State.HasRemains() != v.State.HasRemains() || old.State.Phase != v.State.Phase {
		changed = append(changed, TopicName(name))
	}
	return changed
}

// Delete drops a key's view.
func (s *Store) Delete(k pod.Key) (changed []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.pods[k]
	if !ok {
		return nil
	}
	delete(s.pods, k)
	s.unname(old)
	return []string{TopicName(old.State.FullName())}
}

func (s *Store) unname(v View) {
	name := v.State.FullName()
	keys := slices.DeleteFunc(s.names[name], func(k pod.Key) bool { return k == v.Key })
	if len(keys) == 0 {
		delete(s.names, name)
		return
	}
	s.names[name] = keys
}

// PutChore takes the view of a chore of the node in, in place of its last one.
func (s *Store) PutChore(v View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chores[v.Key] = v
}

// Chores returns the views of the node's chores, by name. All others but Get
// and Find know only pods.
func (s *Store) Chores() []View {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(maps.Values(s.chores), func(a, b View) int { return cmp.Compare(a.Key, b.Key) })
}

// Get returns the view of a key.
func (s *Store) Get(k pod.Key) (View, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if k.IsChore() {
		v, ok := s.chores[k]
		return v, ok
	}
	v, ok := s.pods[k]
	return v, ok
}

// All returns every view, by namespace, name and key.
func (s *Store) All() []View {
	s.mu.RLock()
	all := make([]View, 0, len(s.pods))
	for _, v := range s.pods {
		all = append(all, v)
	}
	s.mu.RUnlock()
	slices.SortFunc(all, func(a, b View) int {
		x, y := a.State.Identity, b.State.Identity
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name), cmp.Compare(a.Key, b.Key))
	})
	return all
}

// Keys returns the keys of all pods, in no order.
func (s *Store) Keys() []pod.Key {
	s.mu.RLock()
	defer s.mu.RUnlock()
	keys := make([]pod.Key, 0, len(s.pods))
	for k := range s.pods {
		keys = append(keys, k)
	}
	return keys
}

// NameHolder returns another static pod that holds the full name of st: one
// that was there earlier, or of which something is left in the runtime.
func (s *Store) NameHolder(st *pod.State) (pod.Key, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	self := pod.KeyOf(st.UID())
	for _, k := range s.names[st.FullName()] {
		other := s.pods[k].State
		if k == self || other.Source() == pod.SourceAPI {
			continue
		}
		if other.HasRemains() || other.Removal != nil || (other.Spec != nil && other.Incarnation < st.Incarnation) {
			return k, true
		}
	}
	return "", false
}

// SetSynced notes that a source has told all it knows.
func (s *Store) SetSynced(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced[source] = true
}

// Synced reports whether the source has told all it knows.
func (s *Store) Synced(source string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.synced[source]
}

// SetRuntime takes what the runtime says about itself.
func (s *Store) SetRuntime(r pod.RuntimeStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runtime = r
}

// Runtime returns what the runtime said about itself last.
func (s *Store) Runtime() pod.RuntimeStatus {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.runtime
}
