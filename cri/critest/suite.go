// Package critest is the contract that flowlet expects of a container runtime, as a test suite. crisim passes it and so
// do the runtimes that are supported; where they differ, the suite says how far they may (Target).
//
// What a test container does is said twice: as a shell command for real runtimes and as an annotation for crisim.
package critest

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
)

// Target is a runtime under test.
type Target struct {
	// Open gives body a runtime for one case. It may make one or share it; it may run body in a synctest bubble.
	// What body starts it also cleans up.
	Open func(t *testing.T, body func(t *testing.T, rt Runtime))

	// Capabilities; a call that the runtime lacks must give cri.ErrUnsupported.
	Events, RuntimeConfig bool
	Streams               bool // Exec, Attach and PortForward

	Image    string   // of the containers; pulled when it is not present
	Programs Programs // what Image can run
	Pullable string   // can be pulled, and removed; may be Image
	Missing  string   // cannot be pulled

	CgroupParent string // for the sandboxes; empty is the runtime's choice
	LogRoot      string // directory below which logs may be written; empty: no logs are asked for
	HostNetwork  bool   // run sandboxes in the host's network, where no pod network is set up
}

// Runtime is what one case works on.
type Runtime struct {
	Client *cri.Client // closed by who made it
	// Restart restarts the runtime and returns when it answers again; nil when that is not possible.
	Restart func()
}

// Run runs the suite as subtests of t.
func Run(t *testing.T, target Target) {
	t.Helper()
	run(t, target, sandboxContract, containerContract, stopContract, imageContract, listContract, eventContract, everyCall(), streamContract())
}

// RunStreams runs only what is about Exec, Attach and PortForward, for runtimes whose streams need real time.
func RunStreams(t *testing.T, target Target) {
	t.Helper()
	run(t, target, streamContract())
}

func run(t *testing.T, target Target, groups ...[]contract) {
	t.Helper()
	for _, group := range groups {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				target.Open(t, func(t *testing.T, rt Runtime) {
					ctx, cancel := context.WithTimeout(t.Context(), caseLimit)
					defer cancel()
					e := &env{T: t, Runtime: rt, Target: target, ctx: ctx}
					defer e.cleanUp()
					e.pullImage()
					c.test(e)
				})
			})
		}
	}
}

// caseLimit is far above what a case takes, even on a loaded machine; it only keeps a hanging runtime from hanging us.
const caseLimit = 2 * time.Minute

type contract struct {
	name string
	test func(*env)
}

// env is one running case.
type env struct {
	*testing.T
	Runtime
	Target
	ctx  context.Context
	pods []*pod
}

// pullImage sees to it that the image of the containers is there.
func (e *env) pullImage() {
	e.Helper()
	img, err := e.Client.ImageStatus(e.ctx, spec(e.Image))
	require.NoError(e, err)
	if img == nil {
		_, err = e.Client.PullImage(e.ctx, spec(e.Image), nil, nil)
		require.NoError(e, err)
	}
}

// pod is a sandbox of the case.
type pod struct {
	id     string
	config *runtimeapi.PodSandboxConfig
}

// Programs are command lines in the image under test. Those for containers:
type Programs struct {
	Wait     []string // runs until SIGTERM and then ends with code 0
	Stubborn []string // runs and ignores SIGTERM
	Exit0    []string // ends at once with code 0
	Exit3    []string // ends at once with code 3
	Say      []string // prints a line that ends in "hello" to standard output and goes on as Wait

	// Those for ExecSync:
	ExecOut  []string // prints "1 out" and a newline to standard output and ends with code 0
	ExecFail []string // prints "err" and a newline to standard error and ends with code 7
	ExecSlow []string // takes a minute
	ExecCopy []string // copies standard input to standard output
}

// Shell are programs for an image with /bin/sh and sleep, for example busybox.
func Shell() Programs {
	sh := func(script string) []string { return []string{"/bin/sh", "-c", script} }
	const wait = `trap "exit 0" TERM; while :; do sleep 0.05; done`
	return Programs{
		Wait: sh(wait), Stubborn: sh(`trap "" TERM; while :; do sleep 0.05; done`),
		Exit0: sh("exit 0"), Exit3: sh("exit 3"), Say: sh("echo hello; " + wait),
		ExecOut: sh("echo 1 out"), ExecFail: sh("echo err >&2; exit 7"), ExecSlow: sh("sleep 60"), ExecCopy: []string{"cat"},
	}
}

// behaviour is what a container does.
type behaviour struct {
	program func(Programs) []string // for real runtimes
	script  string                  // for crisim
}

// The scripts say what the programs do; that of exec answers to the command lines of Shell.
var (
	waits       = behaviour{func(p Programs) []string { return p.Wait }, `{"term":{"code":0}}`}
	stubborn    = behaviour{func(p Programs) []string { return p.Stubborn }, `{"term":{"ignore":true}}`}
	exits3      = behaviour{func(p Programs) []string { return p.Exit3 }, `{"exit":{"code":3}}`}
	exits0      = behaviour{func(p Programs) []string { return p.Exit0 }, `{"exit":{"code":0}}`}
	says        = behaviour{func(p Programs) []string { return p.Say }, `{"log":[{"text":"hello"}],"term":{"code":0}}`}
	cannotStart = behaviour{func(Programs) []string { return []string{"/nope"} }, `{"start":{"error":"exec: \"/nope\": no such file or directory"}}`}
	answers     = behaviour{
		func(p Programs) []string { return p.Wait },
		`{"exec":[{"command":"exit 7","code":7,"stderr":"err\n"},{"command":"sleep 60","after":"1m"},{"command":"out","stdout":"1 out\n"}]}`,
	}
)

// newPod makes a config with names of its own; the container "main" does b.
func (e *env) newPod(b behaviour) *pod {
	e.Helper()
	name := "critest-" + strings.ToLower(rand.Text()[:10])
	config := &runtimeapi.PodSandboxConfig{
		Metadata:    &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "critest", Uid: "uid-" + name},
		Hostname:    name,
		Labels:      map[string]string{labelPodUID: "uid-" + name, "app": "critest"},
		Annotations: map[string]string{"sim.flowlet.dev/containers": `{"main":` + b.script + `}`, "note": "kept"},
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent:    e.CgroupParent,
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER}},
		},
	}
	if e.HostNetwork {
		config.Hostname = ""
		config.Linux.SecurityContext.NamespaceOptions.Network = runtimeapi.NamespaceMode_NODE
	}
	if e.LogRoot != "" {
		config.LogDirectory = filepath.Join(e.LogRoot, name)
	}
	return &pod{config: config}
}

const labelPodUID = "io.kubernetes.pod.uid"

// run starts the sandbox of a new pod.
func (e *env) run(b behaviour) *pod {
	e.Helper()
	p := e.newPod(b)
	e.runAgain(p)
	return p
}

func (e *env) runAgain(p *pod) {
	e.Helper()
	id, err := e.Client.RunPodSandbox(e.ctx, p.config, "")
	require.NoError(e, err)
	require.NotEmpty(e, id)
	p.id = id
	e.pods = append(e.pods, &pod{id: id, config: p.config})
}

// container is the config of attempt of "main" in p.
func (e *env) container(b behaviour, attempt uint32) *runtimeapi.ContainerConfig {
	config := &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: "main", Attempt: attempt},
		Image:       &runtimeapi.ImageSpec{Image: e.Image},
		Command:     b.program(e.Programs),
		Annotations: map[string]string{"note": "kept"},
		Linux:       &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER}}},
	}
	if e.HostNetwork {
		config.Linux.SecurityContext.NamespaceOptions.Network = runtimeapi.NamespaceMode_NODE
	}
	if e.LogRoot != "" {
		config.LogPath = "main.log"
	}
	return config
}

// create makes the container "main" in p's sandbox.
func (e *env) create(p *pod, b behaviour, attempt uint32) string {
	e.Helper()
	config := e.container(b, attempt)
	config.Labels = map[string]string{labelPodUID: p.config.GetMetadata().GetUid(), "app": "critest"}
	id, err := e.Client.CreateContainer(e.ctx, p.id, config, p.config)
	require.NoError(e, err)
	require.NotEmpty(e, id)
	return id
}

// start makes a pod whose container "main" runs.
func (e *env) start(b behaviour) (p *pod, container string) {
	e.Helper()
	p = e.run(b)
	container = e.create(p, b, 0)
	require.NoError(e, e.Client.StartContainer(e.ctx, container))
	return p, container
}

// settled starts a container and gives its process time to take charge of its signals: nothing outside can tell when it
// has. A signal that comes before would end it, whatever it is.
func (e *env) settled(b behaviour) (container string) {
	e.Helper()
	_, container = e.start(b)
	time.Sleep(time.Second)
	return container
}

func (e *env) status(container string) *runtimeapi.ContainerStatus {
	e.Helper()
	s, err := e.Client.ContainerStatus(e.ctx, container)
	require.NoError(e, err)
	return s
}

func (e *env) sandboxStatus(p *pod) *runtimeapi.PodSandboxStatus {
	e.Helper()
	s, err := e.Client.PodSandboxStatus(e.ctx, p.id)
	require.NoError(e, err)
	return s
}

// exited waits until the container has ended.
func (e *env) exited(container string) *runtimeapi.ContainerStatus {
	e.Helper()
	var s *runtimeapi.ContainerStatus
	e.until("container has exited", func() bool {
		s = e.status(container)
		return s.GetState() == runtimeapi.ContainerState_CONTAINER_EXITED
	})
	return s
}

// until polls; real runtimes have no other way to be waited for.
func (e *env) until(what string, holds func() bool) {
	e.Helper()
	const pause = 20 * time.Millisecond
	for !holds() {
		require.NoError(e, e.ctx.Err(), "waiting until %s", what)
		time.Sleep(pause)
	}
}

// cleanUp removes all pods of the case, also when it failed.
func (e *env) cleanUp() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), caseLimit)
	defer cancel()
	for _, p := range e.pods {
		if err := e.Client.StopPodSandbox(ctx, p.id); err != nil {
			e.Errorf("clean up: %v", err)
		}
		if err := e.Client.RemovePodSandbox(ctx, p.id); err != nil {
			e.Errorf("clean up: %v", err)
		}
	}
}
