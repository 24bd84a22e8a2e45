package evict

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/usage"
)

// Measure tells what the node has left and what pods take. It is called by one
// round at a time.
type Measure interface {
	// Node measures what is left; an error may come with what was measured,
	// whose time is zero when that is nothing.
	Node(ctx context.Context) (usage.Node, error)
	// Pods measures these pods; an error may come with what was measured.
	Pods(ctx context.Context, pods []*v1.Pod) (map[types.UID]*usage.Pod, error)
	// Processes counts the processes of every pod.
	Processes(ctx context.Context) (map[types.UID]int64, error)
}

// Reclaim frees what no pod needs.
type Reclaim interface {
	// Containers has those removed that have ended. It does not wait for that,
	// and returns how many were not on their way before.
	Containers() (asked int)
	// Images removes images that nothing uses.
	Images(ctx context.Context) error
}

// Config is what a Manager is made of.
type Config struct {
	Thresholds []Threshold
	Transition time.Duration // evictionPressureTransitionPeriod
	// MaxGrace bounds the grace of pods at soft thresholds
	// (evictionMaxPodGracePeriod).
	MaxGrace time.Duration
	// LocalLimits: limits of local storage are enforced
	// (localStorageCapacityIsolation).
	LocalLimits bool

	Measure Measure
	Reclaim Reclaim
	// Pods returns the pods of the node. It is called at each round.
	Pods func() []*pod.State
	// Judge ends a pod. It never blocks.
	Judge func(k pod.Key, v pod.Verdict)
	// Tell records an event about the node.
	Tell func(reason, message string)
}

// Manager evicts pods. Round may be called by one goroutine at a time, the
// other methods by anybody.
type Manager struct {
	Config
	watch   Watch
	last    pod.Key // evicted last, for the node's sake
	evicted time.Time
	cleared bool // containers that have ended were removed in this shortage

	mu    sync.Mutex
	state State
}

// State is how the node stands.
type State struct {
	At         time.Time // of the last measurement; zero: none yet
	Node       usage.Node
	Conditions []Condition
	Did        string // by the last round that found a threshold met; empty when it is over
}

// New returns a Manager that has measured nothing yet.
func New(c Config) *Manager {
	return &Manager{Config: c, watch: Watch{Thresholds: c.Thresholds, Transition: c.Transition}}
}

// State returns how the node stood at the last round.
func (m *Manager) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// Under reports whether the node is under that pressure.
func (m *Manager) Under(c v1.NodeConditionType) bool {
	for _, is := range m.State().Conditions {
		if is.Type == c {
			return true
		}
	}
	return false
}

// cleanup is how long a round waits for a pod that was evicted before it
// evicts another one: what it took is free only when it is gone.
const cleanup = 30 * time.Second

// immediately is the grace of a pod that has to go at once.
const immediately = time.Second

// Round measures, and evicts what has to go: every pod over a limit of its
// own; else, when the node runs short, one pod, unless it was enough to remove
// what no pod needs. The error says what could not be measured.
func (m *Manager) Round(ctx context.Context) error {
	node, unmeasured := m.Measure.Node(ctx)
	if node.At.IsZero() {
		return unmeasured
	}
	now := time.Now()
	due := m.watch.Look(now, &node)
	m.publish(now, node, len(due) > 0)
	pods := m.living()
	m.cleared = m.cleared && len(due) > 0
	over, err := m.enforce(ctx, now, &node, pods)
	err = errors.Join(unmeasured, err)
	if over || len(due) == 0 {
		return err
	}
	if m.ending(now) {
		m.did("waits for the pod that was evicted last to be gone")
		return err
	}
	return errors.Join(err, m.relieve(ctx, due[0], pods, &node))
}

func (m *Manager) publish(now time.Time, n usage.Node, met bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.At, m.state.Node, m.state.Conditions = now, n, m.watch.Conditions()
	if !met {
		m.state.Did = ""
	}
}

func (m *Manager) did(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.Did = fmt.Sprintf(format, args...)
}

// living are the pods that take room and are not yet to go.
func (m *Manager) living() []*pod.State {
	var out []*pod.State
	for _, s := range m.Pods() {
		if s.Pod() != nil && s.Phase == pod.Active && s.Removal == nil && s.Verdict == nil {
			out = append(out, s)
		}
	}
	return out
}

// ending reports whether the pod that was evicted last is still taken down.
func (m *Manager) ending(now time.Time) bool {
	if m.last == "" || now.Sub(m.evicted) >= cleanup {
		return false
	}
	for _, s := range m.Pods() {
		if pod.KeyOf(s.UID()) == m.last {
			return s.Phase < pod.Finished || s.Phase == pod.Deleting
		}
	}
	return false
}

// enforce evicts the pods that are over a limit of local storage.
func (m *Manager) enforce(ctx context.Context, now time.Time, n *usage.Node, pods []*pod.State) (over bool, _ error) {
	var limited []*v1.Pod
	for _, s := range pods {
		if m.LocalLimits && Limited(s.Pod()) {
			limited = append(limited, s.Pod())
		}
	}
	if len(limited) == 0 {
		return false, nil
	}
	used, err := m.Measure.Pods(ctx, limited)
	layers := n.Layers.Device == n.Nodefs.Device
	for _, p := range limited {
		u := used[p.UID]
		if u == nil || pod.SystemCritical(p) {
			continue
		}
		if message := Over(p, u, layers); message != "" {
			m.evict(p, now, message, immediately, false)
			over = true
		}
	}
	return over, err
}

func (m *Manager) evict(p *v1.Pod, now time.Time, message string, grace time.Duration, disruption bool) {
	m.Judge(pod.KeyOf(p.UID), pod.Verdict{Reason: pod.ReasonEvicted, Message: message, At: now, Grace: &grace, Disruption: disruption})
}

// relieve frees what a threshold asks for, or evicts the first pod.
func (m *Manager) relieve(ctx context.Context, d Due, pods []*pod.State, n *usage.Node) error {
	what := d.Signal.about().resource
	m.Tell("EvictionThresholdMet", fmt.Sprintf("Attempting to reclaim %s", what))
	enough, freed := m.free(ctx, d, n)
	if enough {
		return freed
	}
	ranked, err := m.candidates(ctx, d, pods, n)
	if len(ranked) == 0 {
		m.did("%s: %s left, less than %s, and no pod may be evicted", d.Signal, amount(what, d.Seen.Available), amount(what, d.Value.Of(d.Seen.Capacity)))
		return errors.Join(freed, err)
	}
	c, now := ranked[0], time.Now()
	m.evict(c.Pod, now, shortage(d, c), m.grace(d, c.Pod), true)
	m.last, m.evicted = c.Key, now
	m.did("%s: %s left, less than %s: evicted %s/%s, the first of %d", d.Signal, amount(what, d.Seen.Available),
		amount(what, d.Value.Of(d.Seen.Capacity)), c.Pod.Namespace, c.Pod.Name, len(ranked))
	return errors.Join(freed, err)
}

// grace of a pod that has to go for the node's sake.
func (m *Manager) grace(d Due, p *v1.Pod) time.Duration {
	if !d.Soft {
		return immediately
	}
	grace := m.MaxGrace
	if own := p.Spec.TerminationGracePeriodSeconds; own != nil {
		grace = min(grace, time.Duration(*own)*time.Second)
	}
	return max(0, grace)
}

// candidates are the pods that may be evicted, the first one first.
func (m *Manager) candidates(ctx context.Context, d Due, pods []*pod.State, n *usage.Node) ([]Candidate, error) {
	var specs []*v1.Pod
	for _, s := range pods {
		if !pod.Critical(s.Pod()) { // a static pod would never come back
			specs = append(specs, s.Pod())
		}
	}
	used, err := m.Measure.Pods(ctx, specs)
	if d.Signal == PIDAvailable {
		counts, perr := m.Measure.Processes(ctx)
		err = errors.Join(err, perr)
		for uid, u := range used {
			u.Processes = counts[uid]
		}
	}
	list := make([]Candidate, len(specs))
	for i, p := range specs {
		list[i] = Candidate{Key: pod.KeyOf(p.UID), Pod: p, Used: used[p.UID]}
	}
	return Rank(d.Signal, n, list), err
}

// free removes what no pod needs where that can help, and reports whether it
// was enough: the threshold, with what is to be reclaimed at least, is met no
// longer. The first time, containers that are being removed may yet be enough:
// the next round will tell.
func (m *Manager) free(ctx context.Context, d Due, n *usage.Node) (enough bool, _ error) {
	if !removingHelps(d.Signal, n) {
		return false, nil
	}
	asked := m.Reclaim.Containers()
	freed := m.Reclaim.Images(ctx)
	after, err := m.Measure.Node(ctx)
	if after.At.IsZero() {
		return false, errors.Join(freed, err)
	}
	t := d.Threshold
	switch {
	case !t.met(t.Signal.Read(&after), true):
		m.did("%s: it was enough to remove what no pod needs", d.Signal)
		return true, freed
	case asked > 0 && !m.cleared:
		m.cleared = true
		m.did("%s: waits for %d containers that have ended to be removed", d.Signal, asked)
		return true, freed
	}
	return false, freed
}

// removingHelps reports whether images and containers are on the file system
// that the signal is about.
func removingHelps(s Signal, n *usage.Node) bool {
	switch s {
	case NodeFsAvailable, NodeFsInodesFree:
		return n.Nodefs.Device == n.Images.Device
	case ImageFsAvailable, ImageFsInodesFree:
		return true
	}
	return false
}
