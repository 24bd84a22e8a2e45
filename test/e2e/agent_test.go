//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/flowlet/flowlet/internal/server"
	"github.com/flowlet/flowlet/test/devnode"
)

const (
	nodeName = "e2e"
	// patience is how long anything may take on a busy machine. Nothing takes as long on an idle one.
	patience = 90 * time.Second
)

// agent is a flowlet with directories of its own on the node's tmpfs. It runs between start and stop or kill.
type agent struct {
	t         *testing.T
	node      *devnode.Node
	dir       string
	root      string // --root-dir
	manifests string // staticPodPath
	log       string
	config    map[string]any // KubeletConfiguration
	flags     []string       // more flags
	api       *server.Client
	proc      *process // nil while it is not to run
	kills     int32    // how often it was killed
}

// process is a running flowlet.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
	err   error         // how, to be read after ended
}

// newAgent lays out an agent on a node. It is not started yet. At the end of the test its pods are removed, it is stopped,
// and nothing of either may be left.
func newAgent(t *testing.T, n *devnode.Node) *agent {
	t.Helper()
	name := strings.NewReplacer("/", "-", "Test", "").Replace(t.Name())
	dir, err := n.MemDir("")
	require.NoError(t, err)
	dir, err = os.MkdirTemp(dir, "agent") // short: a socket lies below
	require.NoError(t, err)
	a := &agent{
		t: t, node: n, dir: dir, root: filepath.Join(dir, "root"), manifests: filepath.Join(dir, "pods"),
		log: filepath.Join(n.Dir, "log", "flowlet-"+name+".log"),
	}
	a.config = map[string]any{
		"apiVersion":               "kubelet.config.k8s.io/v1beta1",
		"kind":                     "KubeletConfiguration",
		"staticPodPath":            a.manifests,
		"containerRuntimeEndpoint": n.Endpoint,
		"healthzPort":              0,
		"failSwapOn":               false,
		"failCgroupV1":             false,
		"enforceNodeAllocatable":   []string{"none"},
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               n.CgroupRoot,
		"clusterDNS":               []string{"10.96.0.10"},
		"clusterDomain":            "cluster.local",
		// However full the disk of this machine is:
		"evictionHard":                map[string]string{"memory.available": "0%"},
		"imageGCHighThresholdPercent": 100,
	}
	require.NoError(t, os.Mkdir(a.manifests, 0o755))
	require.NoError(t, os.Mkdir(a.root, 0o755))
	a.api = server.NewClient(a.root)
	t.Cleanup(a.tearDown)
	return a
}

// startAgent is an agent that runs with these manifests: file names and contents in turn.
func startAgent(t *testing.T, n *devnode.Node, manifests ...string) *agent {
	t.Helper()
	a := newAgent(t, n)
	for i := 0; i < len(manifests); i += 2 {
		a.write(manifests[i], manifests[i+1])
	}
	a.start()
	return a
}

// in is the same agent for a part of the test: what fails there fails the part.
func (a *agent) in(t *testing.T) *agent {
	part := *a
	part.t = t
	return &part
}

// command is flowlet with a PATH that has the runtime's tools.
func (a *agent) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary(a.t), args...)
	cmd.Env = append(os.Environ(), "PATH="+a.node.Path())
	return cmd
}

// arguments are those of a run with the agent's configuration, which they write.
func (a *agent) arguments() []string {
	b, err := yaml.Marshal(a.config)
	require.NoError(a.t, err)
	file := filepath.Join(a.dir, "config.yaml")
	require.NoError(a.t, os.WriteFile(file, b, 0o644))
	return append([]string{"run", "--root-dir", a.root, "--config", file, "--hostname-override", nodeName, "--prepare-host=false"}, a.flags...)
}

// start starts the agent and returns at once.
func (a *agent) start() {
	a.t.Helper()
	require.Nil(a.t, a.proc, "the agent runs already")
	log, err := os.OpenFile(a.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(a.t, err)
	defer func() { _ = log.Close() }()
	cmd := a.command(a.arguments()...)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(a.t, cmd.Start())
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.err = cmd.Wait()
	}()
	a.proc = p
}

// kill ends the agent with SIGKILL.
func (a *agent) kill() {
	a.t.Helper()
	require.NotNil(a.t, a.proc, "the agent does not run")
	require.NoError(a.t, a.proc.cmd.Process.Kill())
	<-a.proc.ended
	a.proc = nil
	a.kills++
}

// stop ends the agent with SIGTERM. Its pods go on.
func (a *agent) stop() {
	a.t.Helper()
	require.NotNil(a.t, a.proc, "the agent does not run")
	require.NoError(a.t, a.proc.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-a.proc.ended:
		require.NoError(a.t, a.proc.err, "exit code after SIGTERM")
	case <-time.After(patience):
		_ = a.proc.cmd.Process.Kill()
		<-a.proc.ended
		require.Fail(a.t, "flowlet did not end after SIGTERM")
	}
	a.proc = nil
}

// run is the output and the exit code of one command of flowlet that asks the agent.
func (a *agent) run(args ...string) (string, int) {
	a.t.Helper()
	cmd := a.command(append(args, "--root-dir", a.root)...)
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil {
		require.ErrorAs(a.t, err, &ended)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// write puts a manifest in place, in one step as editors and deployment tools do.
func (a *agent) write(file, content string) {
	a.t.Helper()
	tmp := filepath.Join(a.dir, file+".new")
	require.NoError(a.t, os.WriteFile(tmp, []byte(content), 0o644))
	require.NoError(a.t, os.Rename(tmp, filepath.Join(a.manifests, file)))
}

// remove takes a manifest away.
func (a *agent) remove(file string) {
	a.t.Helper()
	require.NoError(a.t, os.Remove(filepath.Join(a.manifests, file)))
}

// until waits for a condition, which says what it misses. It fails at once when the agent ends meanwhile.
func (a *agent) until(what string, reached func() error) {
	a.t.Helper()
	begin := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var ended chan struct{}
	if a.proc != nil {
		ended = a.proc.ended
	}
	for {
		err := reached()
		if err == nil {
			return
		}
		if time.Since(begin) > patience {
			require.FailNow(a.t, "not reached in time: "+what, "%v", err)
		}
		select {
		case <-ended:
			require.FailNow(a.t, "flowlet ended by itself before: "+what, "%v", a.proc.err)
		case <-tick.C:
		}
	}
}

// list is all pods that the agent shows, by the names in their manifests.
func (a *agent) list() (map[string]*v1.Pod, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.t.Context()), 10*time.Second)
	defer cancel()
	pods, err := a.api.Pods(ctx)
	if err != nil {
		return nil, err
	}
	byName := map[string]*v1.Pod{}
	for i := range pods.Items {
		p := &pods.Items[i]
		byName[strings.TrimSuffix(p.Name, "-"+nodeName)] = p
	}
	return byName, nil
}

// untilPod waits until a pod is as wanted, and returns it.
func (a *agent) untilPod(name, what string, reached func(*v1.Pod) bool) *v1.Pod {
	a.t.Helper()
	var pod *v1.Pod
	a.until(name+" "+what, func() error {
		pods, err := a.list()
		if err != nil {
			return err
		}
		if pod = pods[name]; pod == nil {
			return errors.New("there is no such pod")
		}
		if !reached(pod) {
			return errors.New(outline(pod))
		}
		return nil
	})
	return pod
}

// untilGone waits until the agent has forgotten all pods but these.
func (a *agent) untilGone(but ...string) {
	a.t.Helper()
	a.until("all pods are gone", func() error {
		pods, err := a.list()
		if err != nil {
			return err
		}
		for _, name := range but {
			delete(pods, name)
		}
		if len(pods) == 0 {
			return nil
		}
		var left []string
		for _, p := range pods {
			left = append(left, outline(p))
		}
		return fmt.Errorf("left: %s", strings.Join(left, "; "))
	})
}

func isReady(p *v1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

func hasSucceeded(p *v1.Pod) bool { return p.Status.Phase == v1.PodSucceeded }

// waits says whether a container waits for this reason.
func waits(container, reason string) func(*v1.Pod) bool {
	return func(p *v1.Pod) bool {
		s := status(p, container)
		return s != nil && s.State.Waiting != nil && s.State.Waiting.Reason == reason
	}
}

// status is the status of a container, nil when the pod shows none.
func status(p *v1.Pod, container string) *v1.ContainerStatus {
	for _, list := range [][]v1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return &list[i]
			}
		}
	}
	return nil
}

// outline is a pod's state in one line.
func outline(p *v1.Pod) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s is %s (%s)", p.Name, p.Status.Phase, p.Annotations[server.AnnotationPhase])
	for _, s := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
		switch {
		case s.State.Waiting != nil:
			fmt.Fprintf(b, ", %s waits: %s %s", s.Name, s.State.Waiting.Reason, s.State.Waiting.Message)
		case s.State.Terminated != nil:
			fmt.Fprintf(b, ", %s ended: %s %d", s.Name, s.State.Terminated.Reason, s.State.Terminated.ExitCode)
		default:
			fmt.Fprintf(b, ", %s runs", s.Name)
		}
	}
	return b.String()
}
