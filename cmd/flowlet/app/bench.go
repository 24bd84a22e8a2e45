package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/bench"
	"github.com/flowlet/flowlet/internal/config"
	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/internal/manifest"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/sources/pleg"
	"github.com/flowlet/flowlet/stages"
	"github.com/flowlet/flowlet/stages/container"
	"github.com/flowlet/flowlet/stages/sandbox"
	"github.com/flowlet/flowlet/stages/status"
)

// BenchAgents makes the agents that a bench measures, below one directory.
type BenchAgents struct {
	Root       string // holds state files, pods' directories and logs
	ConfigFile string // a KubeletConfiguration, or empty
	PolicyFile string // slots, deadlines and back-off of classes, or empty
	Log        *slog.Logger
}

// Agent implements bench.Factory: a whole agent with a scripted source.
func (b BenchAgents) Agent(s bench.Setup) (bench.System, error) {
	c, node, err := b.node(s.Simulated, s.Client)
	if err != nil {
		return nil, err
	}
	// The pods that are measured have to fit, whatever the node is for.
	node.Admission.Allocatable[v1.ResourcePods] = *resource.NewQuantity(int64(s.Pods+spare), resource.DecimalSI)
	a := &benchAgent{hooks: s.Hooks, specs: map[types.UID]*pod.Spec{}}
	a.agent = New(Parts{
		Config: c, Runtime: s.Client, Sources: []Source{benchSource{a}}, Node: node, Log: b.Log,
		Observers: []dag.Observer[pod.Key]{&runCount{n: &a.runs}},
	})
	stepped, forgotten := a.agent.domain.Stepped, a.agent.domain.Forgotten
	a.agent.domain.Stepped = func(old, now podstore.View) {
		stepped(old, now)
		a.stepped(old, now)
	}
	a.agent.domain.Forgotten = func(k pod.Key, st *pod.State) {
		forgotten(k, st)
		a.hooks.Gone(k.UID())
	}
	return a, nil
}

// spare is room for pods that something else left.
const spare = 100

func (b BenchAgents) node(simulated bool, client *cri.Client) (*config.Config, Node, error) {
	flags := config.NewFlags()
	flags.RootDir, flags.ConfigFile, flags.PolicyFile = b.Root, b.ConfigFile, b.PolicyFile
	c, err := config.Load(flags)
	if err != nil {
		return nil, Node{}, err
	}
	c.Kubelet.EnforceNodeAllocatable = nil // of the node, not of a bench on it
	c.Kubelet.PodLogsDir = filepath.Join(b.Root, "logs")
	d := &daemon{config: c, log: b.Log, runtime: client}
	if simulated {
		d.endpoint = SimEndpoint
	}
	node, err := d.node()
	node.Container.LinkDir = ""
	node.Orphans = nil // others may have pods on this machine
	return c, node, err
}

// Machine gives the floor the agent's own parts of the machine.
func (b BenchAgents) Machine(s bench.Setup) (bench.Machine, error) {
	_, node, err := b.node(s.Simulated, s.Client)
	if err != nil {
		return nil, err
	}
	node.Sandbox.CgroupParent = node.Cgroups.ParentFor
	events := &status.Events{}
	return benchMachine{node, sandbox.New(s.Client, events, node.Sandbox), container.New(container.Config{
		Runtime: s.Client, Events: events, Volumes: node.Volumes, Files: node.Dirs, Hash: manifest.ContainerHash, Settings: node.Container,
	})}, nil
}

type benchMachine struct {
	node       Node
	sandboxes  *sandbox.Sandboxes
	containers *container.Containers
}

func (m benchMachine) Ensure(ctx context.Context, p *v1.Pod) error {
	if err := m.node.Cgroups.Ensure(ctx, p); err != nil {
		return err
	}
	if err := m.node.Dirs.Ensure(ctx, p); err != nil {
		return err
	}
	for i := range p.Spec.Volumes {
		if err := m.node.Volumes.Ensure(ctx, p, &p.Spec.Volumes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (m benchMachine) Remove(ctx context.Context, p *v1.Pod) error {
	s := m.state(p)
	return errors.Join(m.node.Volumes.Unmount(ctx, s), m.node.Cgroups.Remove(ctx, s), m.node.Dirs.Remove(ctx, s))
}

// state is what the agent would know of a pod.
func (benchMachine) state(p *v1.Pod) *pod.State {
	s, _ := pod.Fold(nil, pod.SpecSet{Spec: &pod.Spec{Pod: p, Source: bench.Source, Seen: time.Now()}})
	return s
}

func (m benchMachine) Sandbox(p *v1.Pod) (*runtimeapi.PodSandboxConfig, error) {
	return m.sandboxes.Config(m.state(p), 0)
}

func (m benchMachine) Container(made bench.Made) (*runtimeapi.ContainerConfig, error) {
	s, _ := pod.Fold(m.state(made.Pod), pod.Observed{Partial: true, Sandboxes: []pod.Sandbox{crifact.SandboxStatus(made.Sandbox)}})
	return m.containers.Request(&container.Start{
		State: s, Container: &made.Pod.Spec.Containers[made.Index], SandboxID: made.Sandbox.GetId(), Image: pod.Image{ID: made.ImageID},
	})
}

// benchAgent is an agent and its only source of pods.
type benchAgent struct {
	agent *Agent
	hooks bench.Hooks
	runs  atomic.Uint64
	sums  atomic.Uint64

	mu    sync.Mutex
	emit  func(stages.Event)
	specs map[types.UID]*pod.Spec
}

var (
	_ bench.System    = (*benchAgent)(nil)
	_ bench.Syncer    = (*benchAgent)(nil)
	_ bench.Explainer = (*benchAgent)(nil)
)

// benchSource is a benchAgent as the pipeline runs it.
type benchSource struct{ *benchAgent }

// Name implements pipeline.Source.
func (benchSource) Name() string { return bench.Source }

// Run implements pipeline.Source: there is nothing to tell but what Set says.
func (s benchSource) Run(ctx context.Context, emit func(stages.Event)) error {
	s.mu.Lock()
	s.emit = emit
	s.mu.Unlock()
	emit(stages.Event{Topic: pipeline.Synced(bench.Source), Seen: time.Now()})
	<-ctx.Done()
	return nil
}

// upEvery is how often a new agent is asked whether it knows its runtime.
const upEvery = 2 * time.Millisecond

// Run implements bench.Runner.
func (a *benchAgent) Run(ctx context.Context, up func()) error {
	var watch sync.WaitGroup
	watch.Go(func() {
		if a.known(ctx) {
			up()
		}
	})
	err := a.agent.Run(ctx)
	watch.Wait()
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// known waits until the agent knows what there is.
func (a *benchAgent) known(ctx context.Context) bool {
	tick := time.NewTicker(upEvery)
	defer tick.Stop()
	for {
		s := a.agent.Store
		if s.Synced(bench.Source) && s.Synced(pleg.Name) && s.Runtime().Ready {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// Set implements bench.Pods.
func (a *benchAgent) Set(p *v1.Pod) {
	spec := &pod.Spec{Pod: p, Source: bench.Source, Sum: a.sums.Add(1), Seen: time.Now()}
	a.mu.Lock()
	a.specs[p.UID] = spec
	a.mu.Unlock()
	a.tell(p.UID, pod.SpecSet{Spec: spec})
}

// Unset implements bench.Pods.
func (a *benchAgent) Unset(p *v1.Pod) {
	a.mu.Lock()
	delete(a.specs, p.UID)
	a.mu.Unlock()
	a.tell(p.UID, pod.SpecGone{Source: bench.Source, At: time.Now()})
}

// Resync implements bench.Syncer.
func (a *benchAgent) Resync(uid types.UID) {
	a.mu.Lock()
	spec := a.specs[uid]
	a.mu.Unlock()
	a.tell(uid, pod.SpecSet{Spec: spec})
}

// Relist implements bench.Syncer.
func (a *benchAgent) Relist(uid types.UID) {
	now := time.Now()
	s := a.agent.state(pod.KeyOf(uid))
	a.tell(uid, pod.Observed{Began: now, Ended: now, Identity: s.Identity, Sandboxes: s.Sandboxes, Containers: s.Containers})
}

// Step implements bench.Syncer.
func (a *benchAgent) Step(uid types.UID) { a.agent.pipeline.Dirty(pod.KeyOf(uid)) }

func (a *benchAgent) tell(uid types.UID, c pod.Change) {
	a.emit(stages.Event{Key: pod.KeyOf(uid), Change: c, Seen: time.Now()})
}

// Stats implements bench.Meter.
func (a *benchAgent) Stats() bench.Stats {
	s := a.agent.pipeline.Stats()
	return bench.Stats{Events: s.Folded, Unchanged: s.Unchanged, Steps: s.Steps, Runs: a.runs.Load(), Dirty: s.Dirty}
}

// Why implements bench.Explainer: it tells about the pod that is not further
// for the longest time.
func (a *benchAgent) Why() string {
	now := time.Now()
	var worst explain.Report
	for _, v := range a.agent.Store.All() {
		g := a.agent.domain.Look(now, v.State)
		r := explain.Why(now, explain.Subject{
			Pod: v.State.FullName(), Phase: v.State.Phase.String(), Stages: explain.FromGraph(g, a.agent.Engine.Memo(v.Key)),
		})
		if len(r.Blocking) > 0 && (worst.Pod == "" || r.Blocking[0].Since.Before(worst.Blocking[0].Since)) {
			worst = r
		}
	}
	return worst.Text()
}

func (a *benchAgent) stepped(old, now podstore.View) {
	outcome := ""
	switch {
	case now.Status == nil:
	case ready(now.Status) && !ready(old.Status):
		outcome = "ready"
	case now.State.Phase == pod.Finishing:
		outcome = fmt.Sprintf("%s: %s %s", now.Status.Phase, now.Status.Reason, now.Status.Message)
	}
	if outcome != "" {
		a.hooks.Started(bench.Started{
			UID: now.Key.UID(), At: time.Now(), Outcome: outcome, Path: func() []bench.Wait { return a.path(now.Key) },
		})
	}
}

// path is the critical path of a pod's start; empty when the journal has no
// room for it any more.
func (a *benchAgent) path(k pod.Key) []bench.Wait {
	var out []bench.Wait
	for _, e := range a.agent.Journal.Episodes(k) {
		if e.Kind != journal.Start {
			continue
		}
		w := explain.Window{From: e.Began, To: e.Ended}
		spans := explain.Spans(e.Entries(), w)
		kinds := make(map[string]string, len(spans))
		for i := range spans {
			kinds[spans[i].ID()] = spans[i].Kind
		}
		for _, s := range explain.CriticalPath(spans, w) {
			out = append(out, bench.Wait{Kind: kinds[s.Stage], State: s.State, Took: s.Duration()})
		}
	}
	return out
}

// runCount counts runs of stages.
type runCount struct {
	dag.NopObserver[pod.Key]

	n *atomic.Uint64
}

// Moved implements dag.Observer.
func (r *runCount) Moved(_ pod.Key, _ dag.ID, _, to dag.Entry) {
	if to.State == dag.Running {
		r.n.Add(1)
	}
}

// BenchRoot makes a new directory for a bench below parent; empty: the usual
// place for temporary files. The caller removes it.
func BenchRoot(parent string) (string, error) {
	root, err := os.MkdirTemp(parent, "flowlet-bench-")
	if err != nil {
		return "", fmt.Errorf("--work-dir: %w", err)
	}
	return root, nil
}
