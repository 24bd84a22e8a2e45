package podstore

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/pod"
)

// Find returns the pod that a user means: NAMESPACE/NAME, NAME in namespace
// default, a UID, or the name that a static pod has in its manifest. Several
// matches are an error that lists them. node/NAME is a chore of the node; a pod
// of that name in a namespace "node" is found by its UID.
func (s *Store) Find(ref string) (View, error) {
	if v, ok := s.Get(pod.Key(ref)); ok {
		return v, nil
	}
	namespace, name, slash := strings.Cut(ref, "/")
	if !slash {
		namespace, name = "default", ref
	}
	var exact, manifest []View
	for _, v := range s.All() {
		id := v.State.Identity
		if id.Namespace != namespace {
			continue
		}
		switch {
		case id.Name == name:
			exact = append(exact, v)
		case v.State.Spec != nil && v.State.Spec.Static() && id.Name == name+"-"+v.State.Spec.Pod.Spec.NodeName:
			manifest = append(manifest, v)
		}
	}
	if len(exact) == 0 {
		exact = manifest
	}
	return one(ref, exact)
}

func one(ref string, found []View) (View, error) {
	switch len(found) {
	case 0:
		return View{}, fmt.Errorf("pod %q is not known here: use NAMESPACE/NAME, NAME (namespace default) or a UID; `flowlet get pods` lists them", ref)
	case 1:
		return found[0], nil
	}
	// An old life of the name beside the new one: the one that is wanted is meant.
	wanted := slices.DeleteFunc(slices.Clone(found), func(v View) bool { return v.State.Removal != nil })
	if len(wanted) == 1 {
		return wanted[0], nil
	}
	var list []string
	for _, v := range found {
		list = append(list, fmt.Sprintf("%s/%s (UID %s, %s)", v.State.Identity.Namespace, v.State.Identity.Name, v.Key, v.State.Phase))
	}
	return View{}, fmt.Errorf("pod %q is ambiguous, name one by its UID: %s", ref, strings.Join(list, ", "))
}

// HasContainer reports whether the full status of a container in that state is
// known, so that nobody needs to ask for it again.
func (s *Store) HasContainer(k pod.Key, id string, state pod.ContainerState) bool {
	v, ok := s.Get(k)
	if !ok {
		return false
	}
	for _, c := range v.State.Containers {
		if c.ID == id {
			return c.State > state || (c.State == state && c.Detailed)
		}
	}
	return false
}

// HasSandbox reports whether the full status of a sandbox is known.
func (s *Store) HasSandbox(k pod.Key, id string) bool {
	v, ok := s.Get(k)
	if !ok {
		return false
	}
	for _, sb := range v.State.Sandboxes {
		if sb.ID == id {
			return sb.Detailed
		}
	}
	return false
}

// Named returns the pod of that name: if several have it, the one that is
// wanted, else the newest. With a UID it is that one or none.
func (s *Store) Named(namespace, name string, uid types.UID) (View, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	best, found := View{}, false
	for _, k := range s.names[pod.Identity{Name: name, Namespace: namespace}.FullName()] {
		v := s.pods[k]
		if uid != "" && v.State.UID() != uid {
			continue
		}
		if !found || best.State.Removal != nil {
			best, found = v, true
		}
	}
	return best, found
}
