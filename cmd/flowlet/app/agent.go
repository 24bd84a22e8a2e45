// Package app is the composition root: it turns a configuration into a wired
// agent and runs it. It is the only package that imports everything.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sourcegraph/conc/pool"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/config"
	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
	"github.com/flowlet/flowlet/internal/server/ui"
	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/sources/pleg"
	"github.com/flowlet/flowlet/stages"
	"github.com/flowlet/flowlet/stages/admit"
	"github.com/flowlet/flowlet/stages/container"
	"github.com/flowlet/flowlet/stages/evict"
	"github.com/flowlet/flowlet/stages/image"
	"github.com/flowlet/flowlet/stages/status"
)

// Source is a source of facts about pods.
type Source = pipeline.Source[pod.Key, pod.Change]

// Parts are what an agent is assembled from. The caller owns them.
type Parts struct {
	Config  *config.Config
	Runtime *cri.Client
	Sources []Source // of pods; the runtime as a source is added
	Node    Node
	Log     *slog.Logger
	// Observers see every move of every stage after the journal. Optional.
	Observers []dag.Observer[pod.Key]
	// Journal sees every move of every stage first; nil: a new one.
	Journal *journal.Journal
	// SkipEvents makes the agent list instead of reading the runtime's events.
	SkipEvents bool
}

// Agent is a wired agent. It exists to be run, and to be looked at while it runs.
type Agent struct {
	Config  *config.Config
	Store   *podstore.Store
	Engine  *stages.Engine
	Events  *status.Events
	Journal *journal.Journal
	PLEG    *pleg.Source
	Records *podstore.Records
	Runtime *RuntimeInfo

	domain   *stages.Domain
	pipeline *stages.Pipeline
	log      *slog.Logger
	sources  []string
	runtime  pod.RuntimeStatus // that was logged last
	restored []pod.Record

	changes  ui.Bell // rings when a page would show something else
	images   *image.Images
	eviction *evict.Manager // nil where the node's use is not measured

	unsupported func(p *v1.Pod) []string // paths of fields without effect
}

// New wires an agent: nothing runs and no call is made yet, but the state
// files are read.
func New(p Parts) *Agent {
	a := &Agent{
		Config: p.Config, Store: podstore.New(), Events: &status.Events{}, log: p.Log,
		Records: podstore.OpenRecords(p.Config.RootDir), Runtime: &RuntimeInfo{client: p.Runtime},
	}
	a.sources = names(p.Sources)
	a.unsupported = func(pod *v1.Pod) []string { return container.Unsupported(pod, p.Node.Container) }
	a.restore()
	if a.Journal = p.Journal; a.Journal == nil {
		a.Journal = journal.New(journal.Options{})
	}
	p.Node.Admission.StrictGroups, p.Node.Admission.Pressed = a.strictGroups, a.pressed
	qps, burst := p.Config.PullQPS()
	a.images = image.New(image.Config{Runtime: p.Runtime, Events: a.Events, Limit: image.Limiter(float64(qps), int(burst)), Keys: p.Node.Keys})
	made := a.containers(p)
	p.Node.Admission.Swaps = made.Swaps
	a.PLEG = pleg.New(pleg.Config{
		Runtime: p.Runtime, Known: a.Store.Keys, State: a.state, Finish: made.Finish, SkipEvents: p.SkipEvents,
	})
	ledger := admit.NewLedger(p.Node.Admission)
	chores := a.chores(p)
	a.domain, a.pipeline, a.Engine = stages.New(stages.Config{
		Graph:       graphConfig(p.Config),
		Work:        a.work(p, ledger, made),
		Store:       a.Store,
		Ledger:      ledger,
		Sources:     a.sources,
		Chores:      chores,
		Runtime:     a.Runtime.Name,
		HostIPs:     p.Node.IPs,
		StopSignals: p.Node.Container.StopSignals,
		Recorder:    a.Events,
		Policy:      p.Config.Policy,
		Observer:    dag.Tee(append([]dag.Observer[pod.Key]{a.Journal, &a.changes}, p.Observers...)...),
		Seed:        uint64(time.Now().UnixNano()),
		Folded:      a.folded,
		Stepped:     a.stepped,
		Forgotten:   a.forgotten,
	}, pipeline.Options{})
	for _, s := range slices.Concat(p.Sources, []Source{a.PLEG}, tickers(chores)) {
		a.pipeline.Add(s)
	}
	return a
}

func names(sources []Source) []string {
	var out []string
	for _, s := range sources {
		out = append(out, s.Name())
	}
	return out
}

func (a *Agent) state(k pod.Key) *pod.State {
	v, _ := a.Store.Get(k)
	return v.State
}

// restore reads the state files. What cannot be read is told and left alone.
func (a *Agent) restore() {
	records, err := a.Records.Load()
	if err != nil {
		a.log.Warn("state files", "error", err)
	}
	a.restored = records
}

// shutdownWait is how long a stopping agent waits for effects in flight. What
// is not done by then ends in the runtime, and the next run of the agent finds it.
const shutdownWait = 10 * time.Second

// Run runs the agent until ctx ends and returns when all it started has ended,
// or after shutdownWait with an error. No container is touched on the way out.
func (a *Agent) Run(ctx context.Context) error {
	for _, r := range a.restored {
		a.pipeline.Emit(stages.Event{Key: pod.KeyOf(r.UID), Change: pod.Restored{Record: r}, Source: "state file", Seen: time.Now()})
	}
	p := pool.New().WithContext(ctx).WithCancelOnError()
	p.Go(a.pipeline.Run)
	p.Go(a.Engine.Run)
	p.Go(a.Runtime.run)
	done := make(chan error, 1)
	go func() { done <- p.Wait() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(shutdownWait)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return fmt.Errorf("calls to the runtime did not end within %s of the shutdown and are left behind", shutdownWait)
	}
}

// Health returns what is wrong with the agent, or nil.
func (a *Agent) Health() error {
	var errs []error
	if h := a.PLEG.Health(); h.ListErr != nil {
		errs = append(errs, fmt.Errorf("container runtime: %w", h.ListErr))
	}
	if err := a.Records.Health(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
