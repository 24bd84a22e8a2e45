package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/cmd/flowlet/app"
	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/config"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
	"github.com/flowlet/flowlet/sources/file"
	"github.com/flowlet/flowlet/stages/admit"
	"github.com/flowlet/flowlet/stages/evict"
	chores "github.com/flowlet/flowlet/stages/node"
)

func TestMain(m *testing.M) {
	// State files are synced; a file system in memory does not make that wait.
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		_ = os.Setenv("TMPDIR", "/dev/shm")
	}
	goleak.VerifyTestMain(m)
}

// setup says what kind of node a scenario plays on.
type setup struct {
	sim        crisim.Config
	volumes    app.Volumes // default: none that matter
	skipEvents bool        // the agent lists only
	noFiles    bool        // the agent has no source of manifests
	served     bool        // the agent has another source of pods, the server
	idle       bool        // the agent is not started
	leftovers  *leftovers  // what is on the machine of pods
	logs       string      // directory of containers' logs, which are written and rotated; empty: none are
	api        apiPods     // of a source that is no directory
	evicts     bool        // the node is measured: 64 Gi of memory, 100 Gi of disk
	configure  func(c *config.Config)
}

// node is a machine with a simulated runtime, a directory of manifests and, as
// long as it is not killed, an agent.
type node struct {
	*testing.T
	setup
	began      time.Time
	sim        *crisim.Runtime
	disk       *disk
	server     *server
	root       string
	roots      int
	agent      *agent
	dead       []*agent
	truth      truth
	moves      moves
	executions executions
	story      []string // what was done to it, for the dump
}

// agent is one life of the agent.
type agent struct {
	*app.Agent
	line  *line
	files *file.Source
	stop  context.CancelCauseFunc
	done  chan error
}

// scenario runs body in virtual time on a node of its own.
func scenario(t *testing.T, s setup, body func(n *node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { play(t, s, body) })
}

func play(t *testing.T, s setup, body func(n *node)) {
	t.Helper()
	n := &node{T: t, setup: s, began: time.Now(), disk: newDisk(), server: newServer(), sim: crisim.New(s.sim), root: filepath.Join(t.TempDir(), "root")}
	n.truth.began = n.began
	ctx, end := context.WithCancelCause(context.Background())
	simEnded := make(chan error, 1)
	go func() { simEnded <- n.sim.Run(ctx) }()
	defer func() {
		n.sim.ClearFaults()
		if n.agent != nil {
			n.shutDown()
		}
		for _, a := range n.dead {
			<-a.done
			a.line.close()
		}
		end(errors.New("the scenario is over"))
		require.NoError(t, <-simEnded)
		n.verdict()
	}()
	if !s.idle {
		n.start()
	}
	body(n)
	n.settle()
}

// start starts an agent on what is on disk.
func (n *node) start() {
	n.Helper()
	require.Nil(n, n.agent, "there is an agent already")
	c := baseConfig(n)
	c.RootDir = n.root
	if n.configure != nil {
		k := *c.Kubelet
		c.Kubelet = &k
		n.configure(c)
	}
	a := &agent{line: newLine(n), done: make(chan error, 1)}
	var sources []app.Source
	if !n.noFiles {
		a.files = file.New(file.Config{
			Path: manifestDir, NodeName: c.NodeName, Disk: n.disk, Watcher: n.disk, Log: logger(n),
			Runs: func(uid types.UID) bool { return a.Runs(uid) },
		})
		sources = append(sources, app.Manifests(a.files))
	}
	if n.served {
		sources = append(sources, n.server)
	}
	if len(n.api) > 0 {
		sources = append(sources, n.api)
	}
	a.Agent = app.New(app.Parts{
		Config: c, Runtime: cri.New(a.line), Sources: sources, Node: n.machine(), Log: logger(n),
		SkipEvents: n.skipEvents, Observers: []dag.Observer[pod.Key]{&n.moves},
	})
	ctx, stop := context.WithCancelCause(context.Background())
	a.stop = stop
	n.agent = a
	go func() { a.done <- a.Run(ctx) }()
	n.settle()
}

var loadConfig = sync.OnceValues(func() (*config.Config, error) {
	flags := config.NewFlags()
	flags.RootDir, flags.HostnameOverride = "/nonexistent", "n1"
	return config.Load(flags)
})

func baseConfig(t require.TestingT) *config.Config {
	c, err := loadConfig()
	require.NoError(t, err)
	copied := *c
	return &copied
}

func logger(t *node) *slog.Logger {
	if os.Getenv("SCENARIO_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

func (n *node) machine() app.Node {
	volumes := n.volumes
	if volumes == nil {
		volumes = app.NoVolumes{}
	}
	m := app.Node{
		IPs: []string{"192.0.2.7"}, Cgroups: app.NoCgroups{}, Dirs: app.NoDirs{}, Volumes: volumes,
		Admission: admit.Config{NodeName: "n1", Allocatable: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("64Gi"), v1.ResourcePods: resource.MustParse("1000"), v1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
		}},
	}
	if n.evicts {
		m.Usage = app.SimUsage{Sim: n.sim, Memory: 64 << 30}
		m.Thresholds = []evict.Threshold{
			{Signal: evict.MemoryAvailable, Value: evict.Value{Part: 0.1}},
			{Signal: evict.NodeFsAvailable, Value: evict.Value{Part: 0.1}},
		}
	}
	if l := n.leftovers; l != nil {
		m.Orphans = &chores.OrphanConfig{Dirs: l, Volumes: l, Cgroups: cgroupsLeft{l}}
	}
	if n.logs != "" {
		m.Sandbox.LogRoot = n.logs
		m.Logs = &chores.LogLimits{MaxSize: 4096, MaxFiles: 1000, Every: 10 * time.Second}
	}
	return m
}

// kill ends the agent as SIGKILL does: what it had sent goes on in the runtime,
// files stay as they are, and nothing that it still does reaches either. The
// next agent gets the directory under another name, so that even a late write
// of the dead one goes nowhere.
func (n *node) kill() {
	n.Helper()
	require.NotNil(n, n.agent, "there is no agent")
	n.agent.line.cut()
	n.roots++
	next := fmt.Sprintf("%s-%d", filepath.Join(filepath.Dir(n.root), "root"), n.roots)
	if err := os.Rename(n.root, next); !errors.Is(err, os.ErrNotExist) {
		require.NoError(n, err)
	}
	n.root = next
	n.agent.stop(errors.New("killed"))
	n.dead = append(n.dead, n.agent)
	n.agent = nil
	n.settle()
}

// shutDown ends the agent as SIGTERM does.
func (n *node) shutDown() {
	n.Helper()
	n.agent.stop(errors.New("told to end"))
	err := <-n.agent.done
	if err != nil {
		n.Logf("the agent ended with: %v", err)
	}
	n.agent.line.cut() // of what it left behind
	n.agent.line.close()
	n.agent = nil
}

// settle lets everything happen that needs no time.
func (n *node) settle() {
	synctest.Wait()
	n.look()
}

// pass lets time go by.
func (n *node) pass(d time.Duration) {
	time.Sleep(d)
	n.settle()
}

// tick is how often a condition is looked at, at first.
const tick = 5 * time.Millisecond

// until waits for a condition, for a time at most.
func (n *node) until(most time.Duration, what string, is func() bool) {
	n.Helper()
	began, end := time.Now(), time.Now().Add(most)
	for n.settle(); !is(); n.pass(max(tick, time.Since(began)/500)) {
		if time.Now().After(end) {
			n.dump()
			require.FailNowf(n, "waited in vain", "%s, %s after the start: %s", most, time.Since(n.began), what)
		}
	}
}

// at is the time since the scenario began.
func (n *node) at(t time.Time) time.Duration { return t.Sub(n.began) }

func (n *node) write(name, text string) {
	n.disk.write(name+".yaml", text)
	n.settle()
}

func (n *node) remove(name string) {
	n.disk.remove(name + ".yaml")
	n.settle()
}

// view is what the agent knows of a pod, by its name in the manifest.
func (n *node) view(name string) (podstore.View, bool) {
	if n.agent == nil {
		return podstore.View{}, false
	}
	v, err := n.agent.Store.Find(name)
	return v, err == nil
}

// phase is the pod's phase as its status says, "" without one.
func (n *node) phase(name string) v1.PodPhase {
	if v, ok := n.view(name); ok && v.Status != nil {
		return v.Status.Phase
	}
	return ""
}

// waiting is the waiting reason of a container.
func (n *node) waiting(name, container string) string {
	v, ok := n.view(name)
	if !ok || v.Status == nil {
		return ""
	}
	for _, st := range append(v.Status.InitContainerStatuses, v.Status.ContainerStatuses...) {
		if st.Name == container && st.State.Waiting != nil {
			return st.State.Waiting.Reason
		}
	}
	return ""
}

// gone reports whether nothing of the pod is left: not in the runtime, not in
// the agent, not on disk.
func (n *node) gone(name string) bool {
	if _, ok := n.view(name); ok {
		return false
	}
	for _, sb := range n.sim.Sandboxes() {
		if m := sb.Status.GetMetadata().GetName(); m == name || m == name+"-n1" {
			return false
		}
	}
	return true
}

// stateFiles lists the agent's state files.
func (n *node) stateFiles() []string {
	files, _ := filepath.Glob(filepath.Join(n.root, "flowlet", "pods", "*"))
	return files
}

func (n *node) dump() {
	n.Helper()
	for _, line := range n.story {
		n.Log(line)
	}
	for _, c := range n.sim.Calls(nil) {
		if c.Method == "Status" && os.Getenv("SCENARIO_ALL") == "" {
			continue
		}
		n.Logf("%9s +%-8s %-18s %s %s#%d %.8s %s", n.at(c.Start), c.Took(), c.Method, c.Pod, c.Container, c.Attempt, c.Object, c.Err)
	}
	if n.agent == nil {
		return
	}
	for _, v := range n.agent.Store.All() {
		s := v.State
		n.Logf("pod %s %s phase %s unsure %v removal %v", s.FullName(), v.Key, s.Phase, s.Unsure, s.Removal != nil)
		for _, sb := range s.Sandboxes {
			n.Logf("  sandbox %.8s #%d ready=%t stopped=%t gone=%t", sb.ID, sb.Attempt, sb.Ready, sb.Stopped, sb.Gone)
		}
		for _, c := range s.Containers {
			n.Logf("  container %s %.8s #%d state=%d gone=%t exit=%+v", c.Name, c.ID, c.Attempt, c.State, c.Gone, c.Exit)
		}
		for id, e := range v.Memo {
			if e.State != dag.Done {
				n.Logf("  stage %s: %s %q since %s until %s why %q on %v err %v", id, e.State, e.Key.Do, n.at(e.Since), n.at(e.Until), e.Why, e.On, e.Err)
			}
		}
	}
}
