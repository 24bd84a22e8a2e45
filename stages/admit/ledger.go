package admit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/pod"
)

// Config describes the node that pods are admitted to.
type Config struct {
	Allocatable v1.ResourceList // what pods may request in sum; "pods" limits their number, when present
	Labels      map[string]string
	NodeName    string
	// Sysctls are the names that pods may set; a name that ends in * is a
	// prefix. See SafeSysctls.
	Sysctls []string
	// StrictGroups says whether the runtime supports supplementalGroupsPolicy
	// Strict, once that is known; nil: it does not.
	StrictGroups func() (yes, known bool)
	// Swaps reports whether a container may use swap; nil: none may.
	Swaps func(p *v1.Pod, c *v1.Container) bool
	// Pressed says whether the node is under that pressure; nil: never.
	Pressed func(v1.NodeConditionType) bool
	// AppArmor: the host enforces AppArmor profiles.
	AppArmor bool
}

// Ledger says which pods the node has room for and holds it for them. Its
// methods may be called concurrently; none blocks, and none walks the pods
// that are there.
type Ledger struct {
	mu      sync.Mutex
	node    node
	entries map[types.UID]*entry
	used    amounts              // by all entries
	ports   map[port][]*entry    // host ports, with who has them
	ending  map[types.UID]*entry // those whose room will be free before long
	freed   amounts              // by the entries that are ending
}

// entry is the room of one life of a pod.
type entry struct {
	uid         types.UID
	incarnation int64
	name        string // namespace/name
	request     amounts
	ports       []hostPort
}

// NoRoomError says that a pod fits once pods that are ending are gone.
type NoRoomError struct{ WaitingFor []string }

func (e *NoRoomError) Error() string {
	return "no room until these pods are gone: " + strings.Join(e.WaitingFor, ", ")
}

// NewLedger returns a ledger without entries.
func NewLedger(c Config) *Ledger {
	return &Ledger{
		node: newNode(c), entries: map[types.UID]*entry{}, used: amounts{}, freed: amounts{},
		ports: map[port][]*entry{}, ending: map[types.UID]*entry{},
	}
}

// Configure replaces the node's description, for example after a label
// changed. Entries stay: a pod that runs is never admitted again.
func (l *Ledger) Configure(c Config) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node = newNode(c)
}

// Admit decides about a pod and, when it is taken, reserves its room in the
// same moment. The fact is pod.Admitted or pod.Rejected. A *NoRoomError says
// that the pod is neither: it will fit once ending pods are gone. A pod that
// has an entry is admitted again without a look.
func (l *Ledger) Admit(_ context.Context, s *pod.State) (pod.Facts, error) {
	if s.Pod() == nil {
		return nil, fmt.Errorf("admitting pod %s: it has no spec", s.UID())
	}
	e := newEntry(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.node.unknown(s.Pod()); err != nil {
		return nil, err
	}
	if have, ok := l.entries[e.uid]; ok && have.incarnation == e.incarnation {
		return pod.Facts{pod.Admitted{At: time.Now()}}, nil
	}
	no, waiting := l.judge(s.Pod(), e)
	switch {
	case len(waiting) > 0:
		return nil, &NoRoomError{waiting}
	case no != nil:
		return pod.Facts{pod.Rejected{Reason: no.reason, Message: no.message, At: time.Now()}}, nil
	}
	l.enter(e)
	return pod.Facts{pod.Admitted{At: time.Now()}}, nil
}

// Room reports whether Admit would decide about the pod now (it may well
// reject it). If not, waitingFor names the ending pods, as namespace/name,
// whose room it waits for. It changes nothing.
func (l *Ledger) Room(s *pod.State) (ok bool, waitingFor []string) {
	if s.Pod() == nil {
		return true, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if have, ok := l.entries[s.UID()]; ok && have.incarnation == s.Incarnation {
		return true, nil
	}
	_, waiting := l.judge(s.Pod(), newEntry(s))
	return len(waiting) == 0, waiting
}

// Reserve enters a pod that runs already, whether it fits or not. A pod whose
// spec is not known yet takes what its state file says, and a pod's place in any
// case; reserve it again when the spec is known.
func (l *Ledger) Reserve(s *pod.State) {
	e := newEntry(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ending := l.ending[e.uid]
	l.leave(e.uid)
	l.enter(e)
	if ending {
		l.end(e)
	}
}

// Ending marks the pod's entry: its room will be free before long.
func (l *Ledger) Ending(s *pod.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.entries[s.UID()]; ok && e.incarnation == s.Incarnation {
		l.end(e)
	}
}

// Release frees the room of this life of the pod; it reports whether there was
// any, so that those who wait can be told.
func (l *Ledger) Release(s *pod.State) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.entries[s.UID()]
	if !ok || e.incarnation != s.Incarnation {
		return false
	}
	l.leave(e.uid)
	return true
}

// judge says why the node does not take a pod, nil if it does. When only pods
// that are ending are in the way, it names them.
func (l *Ledger) judge(p *v1.Pod, e *entry) (no *refusal, waiting []string) {
	if no = l.node.refuses(p); no != nil {
		return no, nil
	}
	short := l.node.lacks(l.used, e.request)
	if short != nil && l.node.lacks(l.used.minus(l.freed), e.request) != nil {
		return short, nil
	}
	if no = l.node.mismatch(p); no != nil {
		return no, nil
	}
	holders, busy := l.portHolders(e)
	if busy {
		return refused("NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"), nil
	}
	if short != nil {
		for _, h := range l.ending {
			holders = append(holders, h.name)
		}
	}
	slices.Sort(holders)
	return short, slices.Compact(holders)
}

func newEntry(s *pod.State) *entry {
	e := &entry{uid: s.UID(), incarnation: s.Incarnation, name: s.Identity.Namespace + "/" + s.Identity.Name}
	room := s.Takes()
	e.request, e.ports = requestOf(room), portsOf(room)
	return e
}

func (l *Ledger) enter(e *entry) {
	l.leave(e.uid) // an earlier life of the UID
	l.entries[e.uid] = e
	l.used.add(e.request)
	for _, p := range e.ports {
		l.ports[p.port] = append(l.ports[p.port], e)
	}
}

func (l *Ledger) leave(uid types.UID) {
	e, ok := l.entries[uid]
	if !ok {
		return
	}
	delete(l.entries, uid)
	l.used.subtract(e.request)
	if _, ok := l.ending[uid]; ok {
		delete(l.ending, uid)
		l.freed.subtract(e.request)
	}
	for _, p := range e.ports {
		left := slices.DeleteFunc(l.ports[p.port], func(o *entry) bool { return o == e })
		if l.ports[p.port] = left; len(left) == 0 {
			delete(l.ports, p.port)
		}
	}
}

func (l *Ledger) end(e *entry) {
	if _, ok := l.ending[e.uid]; !ok {
		l.ending[e.uid] = e
		l.freed.add(e.request)
	}
}

// portHolders returns the ending pods that have a host port that e wants; busy
// when one is held by a pod that stays.
func (l *Ledger) portHolders(e *entry) (holders []string, busy bool) {
	for _, want := range e.ports {
		for _, h := range l.ports[want.port] {
			if h.uid == e.uid || !h.holds(want) {
				continue
			}
			if _, ok := l.ending[h.uid]; !ok {
				return nil, true
			}
			holders = append(holders, h.name)
		}
	}
	return holders, false
}
