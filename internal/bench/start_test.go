package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/internal/bench"
	"github.com/flowlet/flowlet/internal/pod"
)

const image = "example.com/app:1"

// nothing is a machine on which nothing is made; it counts what is undone.
type nothing struct {
	mu      *sync.Mutex
	removed map[types.UID]bool
}

func newNothing() nothing { return nothing{&sync.Mutex{}, map[types.UID]bool{}} }

func (nothing) Ensure(context.Context, *v1.Pod) error { return nil }
func (nothing) Sandbox(p *v1.Pod) (*runtimeapi.PodSandboxConfig, error) {
	return &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: p.Name, Namespace: p.Namespace, Uid: string(p.UID)}, Labels: map[string]string{
		pod.LabelPodName: p.Name, pod.LabelPodNamespace: p.Namespace, pod.LabelPodUID: string(p.UID),
	}}, nil
}

func (nothing) Container(m bench.Made) (*runtimeapi.ContainerConfig, error) {
	ct := m.Pod.Spec.Containers[m.Index]
	return &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: ct.Name}, Image: &runtimeapi.ImageSpec{Image: m.ImageID, UserSpecifiedImage: ct.Image},
	}, nil
}

func (n nothing) Remove(_ context.Context, p *v1.Pod) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.removed[p.UID] = true
	return nil
}

// agent makes each pod's sandbox as it is told and forgets to start the
// containers. broken: it never tells that a pod is ready.
type agent struct {
	setup  bench.Setup
	broken bool

	mu    sync.Mutex
	ctx   context.Context //nolint:containedctx // of Run, for calls that Set makes
	made  map[types.UID]string
	stats bench.Stats
}

func (a *agent) Run(ctx context.Context, up func()) error {
	a.ctx = ctx
	up()
	<-ctx.Done()
	return nil
}

func (a *agent) Set(p *v1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id, err := a.setup.Client.RunPodSandbox(a.ctx, &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: p.Name, Namespace: p.Namespace, Uid: string(p.UID)},
		Labels:   map[string]string{"io.kubernetes.pod.namespace": p.Namespace},
	}, "")
	a.stats.Steps++
	a.made[p.UID] = id
	switch {
	case a.broken:
	case err != nil:
		a.setup.Hooks.Started(bench.Started{UID: p.UID, At: time.Now(), Outcome: err.Error()})
	default:
		path := func() []bench.Wait { return []bench.Wait{{Kind: "sandbox", State: "running", Took: time.Millisecond}} }
		a.setup.Hooks.Started(bench.Started{UID: p.UID, At: time.Now(), Outcome: "ready", Path: path})
	}
}

func (a *agent) Unset(p *v1.Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.setup.Client.RemovePodSandbox(a.ctx, a.made[p.UID])
	a.setup.Hooks.Gone(p.UID)
}

func (a *agent) Stats() bench.Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stats
}

func (a *agent) Why() string { return "it is broken" }

func benchOf(endpoint string, broken bool) (*bench.Bench, nothing) {
	machine := newNothing()
	return &bench.Bench{
		Backend: bench.Backend{Endpoint: endpoint},
		Shape:   bench.Shape{Containers: 2, Images: []string{image}, HostNetwork: true},
		New: func(s bench.Setup) (bench.System, error) {
			return &agent{setup: s, broken: broken, made: map[types.UID]string{}}, nil
		},
		Machine: func(bench.Setup) (bench.Machine, error) { return machine, nil },
		Runs:    2, Timeout: time.Minute, Progress: func(string) {},
	}, machine
}

func TestTheFloorMakesTheCallsOfAnyAgent(t *testing.T) {
	b, _ := benchOf(bench.Sim, false)
	r, err := b.Start(t.Context(), bench.StartOptions{Batches: []int{1, 3}, Floor: true})
	require.NoError(t, err)
	require.Len(t, r.Batches, 2)
	got := r.Batches[1]
	require.Equal(t, map[string]int{
		"RunPodSandbox": 3, "PodSandboxStatus": 3, "ImageStatus": 3, "CreateContainer": 6, "StartContainer": 6, "ContainerStatus": 6,
	}, got.Floor.Median.ByMethod)
	require.Equal(t, map[string]int{"RunPodSandbox": 3}, got.Agent.Median.ByMethod)
	require.Equal(t, [2]int{0, 6}, got.Parity["StartContainer"], "what the agent left out is told")
	require.NotContains(t, got.Parity, "RunPodSandbox")
	require.Len(t, got.Sweep, 2, "no more at a time than there are pods")
	require.Positive(t, got.Ratios["makespanMs"].Value)
	require.Equal(t, []bench.PathShare{{Stage: "sandbox", State: "running", MeanMs: 1, Share: 1}}, got.Path)
}

func TestReportsFitTheirColumns(t *testing.T) {
	b, _ := benchOf(bench.SimDirect, false)
	b.Backend.Latency = map[string]time.Duration{"RunPodSandbox": time.Millisecond}
	r, err := b.Start(t.Context(), bench.StartOptions{Batches: []int{2}, Floor: true})
	require.NoError(t, err)
	r.Warnings = []string{strings.Repeat("a warning of many words ", 9)}
	for line := range strings.Lines(r.Text()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), bench.Width, line)
	}
	data, err := json.Marshal(r)
	require.NoError(t, err)
	var back bench.StartReport
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, bench.StartSchema, back.Schema)
	require.Equal(t, *r, back)
}

// socket serves a simulated runtime that outlives the bench's connections.
func socket(t *testing.T) (*crisim.Runtime, string) {
	t.Helper()
	sim := crisim.New(crisim.Config{})
	path := t.TempDir() + "/s"
	l, err := listen(path)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- sim.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	return sim, "unix://" + path
}

func TestWhatAnAgentLeavesIsRemoved(t *testing.T) {
	for name, end := range map[string]func(b *bench.Bench) (context.Context, error){
		"it never gets ready": func(b *bench.Bench) (context.Context, error) {
			b.Timeout = 100 * time.Millisecond
			return t.Context(), nil
		},
		"the user ends it": func(b *bench.Bench) (context.Context, error) {
			stopped := errors.New("interrupt")
			ctx, stop := context.WithCancelCause(t.Context())
			time.AfterFunc(200*time.Millisecond, func() { stop(stopped) })
			return ctx, stopped
		},
	} {
		t.Run(name, func(t *testing.T) {
			sim, endpoint := socket(t)
			client, err := cri.Dial(endpoint)
			require.NoError(t, err)
			defer client.Close()
			others, err := client.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{
				Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "default", Uid: "1"},
				Labels:   map[string]string{"io.kubernetes.pod.namespace": "default"},
			}, "")
			require.NoError(t, err)

			b, machine := benchOf(endpoint, true)
			ctx, want := end(b)
			_, err = b.Start(ctx, bench.StartOptions{Batches: []int{5}})
			require.Error(t, err)
			if want != nil {
				require.ErrorIs(t, err, want)
			} else {
				require.ErrorContains(t, err, "it is broken")
			}
			require.Len(t, sim.Sandboxes(), 1)
			require.Equal(t, others, sim.Sandboxes()[0].Status.GetId(), "other pods are left alone")
			require.Len(t, machine.removed, 10, "warm-up pods")
		})
	}
}

func TestSyncNeedsAnAgentThatCanBeAsked(t *testing.T) {
	b, _ := benchOf(bench.Sim, false)
	_, err := b.Sync(t.Context(), bench.SyncOptions{Pods: 1, For: time.Millisecond})
	require.ErrorContains(t, err, "does not take events")
}

func TestAnUnknownEndpointIsNamed(t *testing.T) {
	b, _ := benchOf("sim:fast", false)
	_, err := b.Start(t.Context(), bench.StartOptions{Batches: []int{1}})
	require.ErrorContains(t, err, "--runtime sim:fast")
}
