// Package stages is where pods meet the engine: events are folded into a pod's
// state, the graph of its phase is built, the engine decides and runs, and the
// end of each run comes back as an event. It is the only package that knows
// both pipeline and dag.
package stages

import (
	"math"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/stages/graph"
	"github.com/flowlet/flowlet/stages/node"
	"github.com/flowlet/flowlet/stages/status"
)

// Engine is the workflow engine of pods.
type Engine = dag.Engine[pod.Key, pod.Facts]

// Event is an event of the pipeline of pods.
type Event = pipeline.Event[pod.Key, pod.Change]

// Pipeline is the fan-in of pods.
type Pipeline = pipeline.Pipeline[pod.Key, pod.Change, *pod.State]

// Ledger holds room on the node for the pods that were admitted.
type Ledger interface {
	// Reserve enters a pod that was admitted; Release frees its room and
	// reports whether it had any.
	Reserve(s *pod.State)
	Ending(s *pod.State)
	Release(s *pod.State) bool
	Room(s *pod.State) (ok bool, waitingFor []string)
	Resizable(s *pod.State) (ok bool, reason, message string)
}

// Config is what a Domain is made of.
type Config struct {
	Graph   *graph.Config
	Work    *graph.Work
	Store   *podstore.Store
	Ledger  Ledger
	Sources []string      // that this agent has
	Runtime func() string // scheme of container IDs
	HostIPs []string
	// StopSignals: the gate ContainerStopSignals is on.
	StopSignals bool
	Policy      dag.Policy
	Observer    dag.Observer[pod.Key]
	Recorder    pod.Recorder // of Kubernetes events
	Seed        uint64
	Chores      []node.Chore
	// Folded is called with each event that changed what is known about a key,
	// and with each about a topic, under the pipeline's lock: it must be quick.
	// Optional.
	Folded func(ev Event)
	// Stepped is called after each step with the pod's newest view, in the
	// step loop: it must be quick. Optional.
	Stepped func(old, now podstore.View)
	// Forgotten is called when nothing of a pod is left. Optional.
	Forgotten func(k pod.Key, s *pod.State)
}

// Domain gives events their meaning for pods. Its methods are called by the
// pipeline.
type Domain struct {
	Config

	engine  *Engine
	events  *Pipeline
	chores  map[pod.Key]node.Chore
	sources []string // the runtime and those of Config, at most maxSources
}

// maxSources is how many sources one agent can have, the runtime among them.
const maxSources = 8

// topicLedger is changed when room on the node became free.
const topicLedger = "ledger"

// sourceStage is the source of events that tell the end of a stage.
const sourceStage = "stage"

// New returns the domain of pods with its pipeline and its engine, which both
// have to be run.
func New(c Config, o pipeline.Options) (*Domain, *Pipeline, *Engine) {
	d := &Domain{Config: c, chores: make(map[pod.Key]node.Chore)}
	if c.Graph != nil {
		d.sources = append(d.sources, c.Graph.RuntimeSource)
	}
	d.sources = append(d.sources, c.Sources...)
	for _, chore := range c.Chores {
		d.chores[pod.ChoreKey(chore.Name())] = chore
	}
	d.engine = dag.New(c.Policy, d.deliver, dag.Options[pod.Key]{Observer: c.Observer, Seed: c.Seed})
	d.events = pipeline.New[pod.Key, pod.Change, *pod.State](d, o)
	return d, d.events, d.engine
}

// deliver turns the end of a run into an event.
func (d *Domain) deliver(k pod.Key, _ dag.ID, facts pod.Facts, _ error) {
	if k.IsChore() {
		facts = append(facts, pod.Ran{At: time.Now()})
	}
	d.events.Emit(Event{Key: k, Change: pod.StageEnded{Facts: facts}, Source: sourceStage, Seen: time.Now()})
}

// Fold is pod.Fold, or that of chores, which are pure; who wants to know is
// told after it.
func (d *Domain) Fold(prev *pod.State, ev Event) (next *pod.State, changed bool) {
	if ev.Key.IsChore() {
		next, changed = pod.FoldChore(ev.Key, prev, ev.Change)
	} else {
		next, changed = pod.Fold(prev, ev.Change)
	}
	if changed && d.Folded != nil {
		d.Folded(ev)
	}
	return next, changed
}

// Topic takes what a topic's event tells into the store.
func (d *Domain) Topic(ev Event) {
	if source, ok := strings.CutPrefix(ev.Topic, pipeline.Synced("")); ok {
		d.Store.SetSynced(source)
	}
	if r, ok := ev.Change.(pod.RuntimeStatus); ok {
		d.Store.SetRuntime(r)
	}
	if d.Folded != nil {
		d.Folded(ev)
	}
}

// Pods that end or that nobody has named yet are looked at first: others may
// wait for what they hold. Then those that run already, so that they have
// their room before a new one asks for it.
const (
	firstPriority   = graph.EndingPriority
	runningPriority = firstPriority - 1
	// Chores come after all pods: one that asks whether a pod is known has to
	// find it when its source has told of it.
	chorePriority = math.MinInt
)

// Priority orders pods that are to be stepped.
func (d *Domain) Priority(_ pod.Key, s *pod.State) int {
	switch {
	case s.Chore != nil:
		return chorePriority
	case s.Phase >= pod.Finishing || s.Spec == nil:
		return firstPriority
	case s.Admission.Done:
		return runningPriority
	case s.Spec.Pod.Spec.Priority != nil:
		return int(*s.Spec.Pod.Spec.Priority)
	}
	return 0
}

// Step looks at one pod, or one chore.
func (d *Domain) Step(k pod.Key, s *pod.State, _ uint64) pipeline.Next {
	if k.IsChore() {
		return d.stepChore(k, s)
	}
	w := d.look()
	if newer, ok := d.events.State(k); ok {
		s = newer
	}
	now := time.Now()
	g := graph.Build(graph.In{Now: now, State: s, World: w, Config: d.Config.Graph}, d.Work)
	memo, wake := d.engine.Step(k, g)
	if s.Phase == pod.Forgotten && d.engine.Forget(k) {
		d.forget(k, s)
		return pipeline.Next{Forget: true}
	}
	old, _ := d.Store.Get(k)
	d.reborn(old.State, s)
	d.reserve(old.State, s)
	d.put(now, old, podstore.View{Key: k, State: s, Memo: memo})
	return pipeline.Next{Wake: wake, Reads: w.topics}
}

// look notes which sources have told all they know. What a source told came
// before that, so a state that is read afterwards has it; the one that a step is
// given may be older. Else a pod would be taken for one that no source wants, or
// for one of which the runtime has nothing, just when they tell.
func (d *Domain) look() *world {
	w := &world{d: d}
	for i, source := range d.sources {
		w.synced[i] = d.Store.Synced(source)
	}
	return w
}

// reborn ends what the store and the ledger hold of an earlier life of the UID.
func (d *Domain) reborn(old, s *pod.State) {
	if old != nil && old.Incarnation != s.Incarnation && d.Ledger.Release(old) {
		d.topic(topicLedger)
	}
}

// reserve keeps the ledger in line with the pod's phase. The room of a running
// pod is entered at its first step, whether a source has named it yet or not:
// that is how it gets it after a restart.
func (d *Domain) reserve(old, s *pod.State) {
	same := old != nil && old.Spec == s.Spec && old.Phase == s.Phase && old.Incarnation == s.Incarnation
	if same && (s.Spec != nil || old.Alive() == s.Alive()) {
		return
	}
	switch {
	case s.Phase == pod.Active && s.Spec == nil && !s.Alive(): // what is left of a pod takes nothing
		if d.Ledger.Release(s) {
			d.topic(topicLedger)
		}
	case s.Phase == pod.Active:
		d.Ledger.Reserve(s)
		if old != nil && old.Phase == pod.Active && old.Incarnation == s.Incarnation {
			d.topic(topicLedger) // another spec may need less room
		}
	case s.Phase == pod.Finishing || s.Phase == pod.Deleting:
		d.Ledger.Ending(s)
	case s.Phase == pod.Finished && d.Ledger.Release(s):
		d.topic(topicLedger)
	}
}

func (d *Domain) put(now time.Time, old, v podstore.View) {
	if v.State.Spec != nil {
		v.Status = d.status(now, v, old.Status)
	}
	status.Tell(d.Recorder, status.Look{State: old.State, Memo: old.Memo}, status.Look{State: v.State, Memo: v.Memo})
	for _, t := range d.Store.Put(v) {
		d.topic(t)
	}
	if d.Stepped != nil {
		d.Stepped(old, v)
	}
}

func (d *Domain) status(now time.Time, v podstore.View, prev *v1.PodStatus) *v1.PodStatus {
	st := status.Compute(status.In{
		Now: now, State: v.State, Memo: v.Memo, Runtime: d.Runtime(), HostIPs: d.HostIPs, Prev: prev,
		Probes: graph.Verdicts(v.State), StopSignals: d.StopSignals,
		RecursiveReadOnly: d.Store.Runtime().Features.Handlers[""].RecursiveReadOnly,
	})
	return &st
}

func (d *Domain) forget(k pod.Key, s *pod.State) {
	for _, t := range d.Store.Delete(k) {
		d.topic(t)
	}
	if d.Ledger.Release(s) {
		d.topic(topicLedger)
	}
	if d.Forgotten != nil {
		d.Forgotten(k, s)
	}
}

func (d *Domain) topic(t string) {
	d.events.Emit(Event{Topic: t, Source: "store", Seen: time.Now()})
}

// Look returns the graph that a pod, or a chore, would have in that state,
// only to be looked at: for plans and pictures. It may be called concurrently.
func (d *Domain) Look(now time.Time, s *pod.State) *graph.Graph {
	if s.Chore != nil {
		return d.choreGraph(now, s, d.look())
	}
	return graph.Build(graph.In{Now: now, State: s, World: d.look(), Config: d.Config.Graph}, nil)
}

// world is what one step reads of what pods share.
type world struct {
	d      *Domain
	topics []string
	synced [maxSources]bool // by the domain's sources
}

var _ graph.World = (*world)(nil)

func (w *world) read(topic string) {
	if !slices.Contains(w.topics, topic) {
		w.topics = append(w.topics, topic)
	}
}

func (w *world) Configured(source string) bool { return slices.Contains(w.d.Sources, source) }

func (w *world) Synced(source string) bool {
	w.read(pipeline.Synced(source))
	i := slices.Index(w.d.sources, source)
	return i >= 0 && w.synced[i]
}

func (w *world) NameHolder(s *pod.State) (pod.Key, bool) {
	w.read(podstore.TopicName(s.FullName()))
	return w.d.Store.NameHolder(s)
}

func (w *world) NetworkReady() (bool, string) {
	w.read(podstore.TopicNetwork)
	r := w.d.Store.Runtime()
	if r.NetworkReady {
		return true, ""
	}
	if r.Message == "" {
		return false, "network state unknown"
	}
	return false, r.Message
}

func (w *world) Room(s *pod.State) (bool, []string) {
	w.read(topicLedger)
	return w.d.Ledger.Room(s)
}

func (w *world) Resizable(s *pod.State) (bool, string, string) {
	w.read(topicLedger)
	return w.d.Ledger.Resizable(s)
}
