package status_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/status"
)

var t0 = time.Unix(1_000_000, 0)

func at(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }

// world is a pod with what is known about it.
type world struct {
	pod     *v1.Pod
	source  string
	changes []pod.Change
	memo    dag.Memo
	prev    *v1.PodStatus
	probes  func(*v1.Container, string) (bool, bool)
}

func newWorld(changes ...func(*v1.Pod)) *world {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u", Generation: 3}}
	p.Spec.RestartPolicy = v1.RestartPolicyAlways
	p.Spec.Containers = []v1.Container{{Name: "web", Image: "nginx"}}
	for _, c := range changes {
		c(p)
	}
	return &world{pod: p, source: pod.SourceFile, memo: dag.Memo{}}
}

func (w *world) with(changes ...pod.Change) *world {
	w.changes = append(w.changes, changes...)
	return w
}
func (w *world) api() *world { w.source = pod.SourceAPI; return w }

func (w *world) entry(kind, of string, e dag.Entry) *world {
	if e.Key == (dag.Key{}) {
		e.Key = dag.Key{Do: "it"}
	}
	w.memo[dag.ID{Kind: kind, Of: of}] = e
	return w
}

func (w *world) compute() v1.PodStatus {
	s, _ := pod.Fold(nil, pod.SpecSet{Spec: &pod.Spec{Pod: w.pod, Source: w.source, Seen: t0}})
	for _, c := range w.changes {
		s, _ = pod.Fold(s, c)
	}
	return status.Compute(status.In{
		Now: at(100), State: s, Memo: w.memo, Runtime: "containerd", HostIPs: []string{"192.0.2.1", "2001:db8::1"},
		Prev: w.prev, Probes: w.probes,
	})
}

func restart(rp v1.RestartPolicy) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.RestartPolicy = rp } }

func containers(names ...string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Containers = nil
		for _, n := range names {
			p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: n, Image: "nginx"})
		}
	}
}

func inits(names ...string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		for _, n := range names {
			p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: n, Image: "setup"})
		}
	}
}

func sidecar(name string) func(*v1.Pod) {
	always := v1.ContainerRestartPolicyAlways
	return func(p *v1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: name, Image: "proxy", RestartPolicy: &always})
	}
}

var (
	admitted = pod.Admitted{At: at(1)}
	ready    = pod.Observed{Began: at(2), Ended: at(2), Partial: true, Sandboxes: []pod.Sandbox{
		{ID: "s", Ready: true, Detailed: true, CreatedAt: at(2), IPs: []string{"2001:db8::5", "10.0.0.5"}},
	}}
	notReady = pod.Observed{Began: at(60), Ended: at(60), Partial: true, Sandboxes: []pod.Sandbox{{ID: "s", CreatedAt: at(2)}}}
	deleted  = pod.SpecGone{Source: pod.SourceFile, At: at(50)}
)

func seen(cs ...pod.Container) pod.Change {
	return pod.Observed{Began: at(3), Ended: at(3), Partial: true, Containers: cs}
}

func created(name string, attempt uint32) pod.Container {
	return pod.Container{
		ID: name + string(rune('0'+attempt)), Name: name, Attempt: attempt, SandboxID: "s", Image: "docker.io/library/nginx:1",
		ImageRef: "nginx@sha256:1", CreatedAt: at(3), Detailed: true,
	}
}

func running(name string, attempt uint32) pod.Container {
	c := created(name, attempt)
	c.State, c.StartedAt = pod.Running, at(4)
	return c
}

func exited(name string, attempt uint32, code int32) pod.Container {
	c := running(name, attempt)
	c.State, c.Exit = pod.Exited, pod.Exit{Code: code, Reason: "Error", FinishedAt: at(10)}
	if code == 0 {
		c.Exit.Reason = "Completed"
	}
	return c
}

func gone(c pod.Container) pod.Container { c.Gone = true; return c }

// state is a container's state in one word.
func state(s v1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		return "terminated " + s.Terminated.Reason
	case s.Waiting != nil:
		return "waiting " + s.Waiting.Reason
	}
	return ""
}

func TestStatusOfARunningPodInFull(t *testing.T) {
	got := newWorld().with(admitted, ready, seen(running("web", 0))).compute()
	started := true
	stamp := metav1.NewTime(at(100))
	condition := func(k v1.PodConditionType) v1.PodCondition {
		return v1.PodCondition{Type: k, Status: v1.ConditionTrue, LastTransitionTime: stamp, ObservedGeneration: 3}
	}
	start := metav1.NewTime(at(1))
	want := v1.PodStatus{
		ObservedGeneration: 3,
		Phase:              v1.PodRunning,
		Conditions: []v1.PodCondition{
			condition("PodReadyToStartContainers"), condition("Initialized"), condition("Ready"),
			condition("ContainersReady"), condition("PodScheduled"),
		},
		HostIP: "192.0.2.1", HostIPs: []v1.HostIP{{IP: "192.0.2.1"}, {IP: "2001:db8::1"}},
		PodIP: "10.0.0.5", PodIPs: []v1.PodIP{{IP: "10.0.0.5"}, {IP: "2001:db8::5"}},
		StartTime: &start, QOSClass: v1.PodQOSBestEffort,
		ContainerStatuses: []v1.ContainerStatus{{
			Name: "web", State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(at(4))}},
			Ready: true, Started: &started, Image: "docker.io/library/nginx:1", ImageID: "nginx@sha256:1", ContainerID: "containerd://web0",
			Resources: &v1.ResourceRequirements{},
		}},
		Resources: &v1.ResourceRequirements{},
	}
	require.Empty(t, cmp.Diff(want, got, cmpopts.EquateEmpty()))
}

func TestPhaseAndContainerState(t *testing.T) {
	crash := dag.Entry{State: dag.Held, Why: status.CrashLoop + " 20s", Until: at(30), Since: at(10)}
	for name, tc := range map[string]struct {
		w     *world
		phase v1.PodPhase
		web   string // state of the container web
		last  string
	}{
		"just seen":          {newWorld(), v1.PodPending, "waiting ContainerCreating", ""},
		"init containers":    {newWorld(inits("i")).with(admitted, ready, seen(running("i", 0))), v1.PodPending, "waiting PodInitializing", ""},
		"created":            {newWorld().with(admitted, ready, seen(created("web", 0))), v1.PodPending, "waiting ", ""},
		"one never ran":      {newWorld(containers("web", "b")).with(admitted, ready, seen(running("web", 0))), v1.PodPending, "running", ""},
		"exited, restarting": {newWorld().with(admitted, ready, seen(exited("web", 0, 1))), v1.PodRunning, "terminated Error", ""},
		"crash loop": {
			newWorld().with(admitted, ready, seen(exited("web", 0, 1), exited("web", 1, 1))).entry("container", "web", crash),
			v1.PodRunning, "waiting CrashLoopBackOff", "terminated Error",
		},
		"crash loop after exit 0": {
			newWorld().with(admitted, ready, seen(exited("web", 0, 0))).entry("container", "web", crash),
			v1.PodRunning, "waiting CrashLoopBackOff", "terminated Completed",
		},
		"running again": {
			newWorld().with(admitted, ready, seen(exited("web", 0, 1), running("web", 1))), v1.PodRunning, "running", "terminated Error",
		},
		"all succeeded":     {newWorld(restart("OnFailure")).with(admitted, ready, seen(exited("web", 0, 0))), v1.PodSucceeded, "terminated Completed", ""},
		"failed for good":   {newWorld(restart("Never")).with(admitted, ready, seen(exited("web", 0, 1))), v1.PodFailed, "terminated Error", ""},
		"a sidecar runs on": {newWorld(restart("Never"), sidecar("m")).with(admitted, ready, seen(running("m", 0), exited("web", 0, 0))), v1.PodRunning, "terminated Completed", ""},
		"the sidecar has stopped too": {
			newWorld(restart("Never"), sidecar("m")).with(admitted, ready, seen(exited("m", 0, 143), exited("web", 0, 0))),
			v1.PodSucceeded, "terminated Completed", "",
		},
		"sidecar restarts while the pod runs": {
			newWorld(sidecar("m")).with(admitted, ready, seen(exited("m", 0, 1), running("web", 0))), v1.PodRunning, "running", "",
		},
		"init failed for good": {newWorld(restart("Never"), inits("i")).with(admitted, ready, seen(exited("i", 0, 1))), v1.PodFailed, "waiting PodInitializing", ""},
		"init is tried again":  {newWorld(inits("i")).with(admitted, ready, seen(exited("i", 0, 1))), v1.PodPending, "waiting PodInitializing", ""},
		"lost while it ran":    {newWorld().with(admitted, ready, seen(running("web", 0)), seen(gone(running("web", 0)))), v1.PodRunning, "waiting ContainerCreating", "terminated ContainerStatusUnknown"},
		"lost, restart never": {
			newWorld(restart("Never")).with(admitted, ready, seen(running("web", 0)), seen(gone(running("web", 0)))),
			v1.PodFailed, "terminated ContainerStatusUnknown", "",
		},
		"deleted, still running": {newWorld().api().with(admitted, ready, seen(running("web", 0)), del()), v1.PodRunning, "running", ""},
		"deleted, sandbox up":    {newWorld().api().with(admitted, ready, seen(running("web", 0)), del(), seen(exited("web", 0, 0))), v1.PodRunning, "terminated Completed", ""},
		"deleted and over":       {newWorld().api().with(admitted, ready, seen(running("web", 0)), del(), seen(exited("web", 0, 0)), notReady), v1.PodSucceeded, "terminated Completed", ""},
		"deleted, killed":        {newWorld().api().with(admitted, ready, seen(running("web", 0)), del(), seen(exited("web", 0, 137)), notReady), v1.PodFailed, "terminated Error", ""},
		"deleted before start":   {newWorld().api().with(admitted, del()), v1.PodFailed, "terminated ContainerStatusUnknown", ""},
		"static, deleted":        {newWorld().with(admitted, ready, seen(exited("web", 0, 0)), deleted, notReady), v1.PodRunning, "terminated Completed", ""},
		"finished without having run": {
			newWorld(restart("Never")).with(admitted, ready, seen(created("web", 0)), notReady, pod.Settled{}), v1.PodFailed, "waiting ", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.w.compute()
			require.Equal(t, tc.phase, got.Phase)
			i := 0
			for got.ContainerStatuses[i].Name != "web" {
				i++
			}
			web := got.ContainerStatuses[i]
			require.Equal(t, tc.web, state(web.State))
			require.Equal(t, tc.last, state(web.LastTerminationState))
		})
	}
}

func TestInitContainerThatTheRuntimeHasLostIsDone(t *testing.T) {
	old := exited("i", 0, 255)
	old.SandboxID = "older"
	st := newWorld(inits("i")).with(admitted, ready, seen(old, running("web", 0))).compute()
	require.Equal(t, v1.PodRunning, st.Phase)
	require.Equal(t, "terminated Completed", state(st.InitContainerStatuses[0].State))
}

func del() pod.Change { return pod.SpecGone{Source: pod.SourceAPI, At: at(50)} }

func TestWaitingReasons(t *testing.T) {
	fail := func(reason string, attempt int) dag.Entry {
		return dag.Entry{State: dag.Failed, Attempt: attempt, Err: pod.WithReason(reason, errors.New("not found")), Until: at(110)}
	}
	waiting := dag.Entry{State: dag.Waiting}
	held := dag.Entry{State: dag.Held, Why: status.CrashLoop + " 1m20s", Until: at(90), Since: at(11)}
	for name, tc := range map[string]struct {
		w               *world
		reason, message string
	}{
		"first failed pull": {newWorld().entry("container", "web", waiting).entry("image", "nginx", fail("ErrImagePull", 1)), "ErrImagePull", "not found"},
		"later failed pull": {
			newWorld().entry("container", "web", waiting).entry("image", "nginx", fail("ErrImagePull", 2)),
			"ImagePullBackOff", `Back-off pulling image "nginx": ErrImagePull: not found`,
		},
		"registry away": {
			newWorld().entry("container", "web", waiting).entry("image", "nginx", fail("RegistryUnavailable", 3)),
			"ImagePullBackOff", `Back-off pulling image "nginx": RegistryUnavailable: not found`,
		},
		"never pull":                             {newWorld().entry("container", "web", waiting).entry("image.look", "nginx", fail("ErrImageNeverPull", 5)), "ErrImageNeverPull", "not found"},
		"inputs missing":                         {newWorld().entry("container", "web", waiting).entry("inputs", "web", fail("", 5)), "CreateContainerConfigError", "not found"},
		"start failed":                           {newWorld().entry("container", "web", fail("RunContainerError", 1)), "RunContainerError", "not found"},
		"start failed without a word of its own": {newWorld().entry("container", "web", fail("", 1)), "CreateContainerError", "not found"},
		"image of an app before its turn": {
			newWorld(inits("i")).entry("container", "web", waiting).entry("image", "nginx", fail("ErrImagePull", 4)), "PodInitializing", "",
		},
		"crash loop": {
			newWorld().with(admitted, seen(exited("web", 0, 1))).entry("container", "web", held),
			"CrashLoopBackOff", "back-off 1m20s restarting failed container=web pod=p_ns(u)",
		},
		"mounts": {newWorld().entry("container", "web", waiting).entry("volume", "v", fail("FailedMount", 4)), "ContainerCreating", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.w.compute().ContainerStatuses[0].State.Waiting
			require.Equal(t, &v1.ContainerStateWaiting{Reason: tc.reason, Message: tc.message}, got)
		})
	}
}

func TestConditions(t *testing.T) {
	type c = v1.PodCondition
	get := func(s v1.PodStatus, k v1.PodConditionType) c {
		for _, pc := range s.Conditions {
			if pc.Type == k {
				return pc
			}
		}
		return c{}
	}
	two := pod.Observed{Partial: true, Sandboxes: []pod.Sandbox{{ID: "s2", Attempt: 1, Ready: true, IPs: []string{"10.0.0.6"}}}}
	for name, tc := range map[string]struct {
		w               *world
		kind            v1.PodConditionType
		status          v1.ConditionStatus
		reason, message string
	}{
		"no sandbox":         {newWorld(), "PodReadyToStartContainers", "False", "PodSandboxNotReady", "no pod sandbox exists"},
		"sandbox":            {newWorld().with(ready), "PodReadyToStartContainers", "True", "", ""},
		"two sandboxes":      {newWorld().with(ready, two), "PodReadyToStartContainers", "False", "PodSandboxNotReady", "multiple pod sandboxes are ready and need to be reconciled"},
		"sandbox stopped":    {newWorld().with(ready, notReady), "PodReadyToStartContainers", "False", "PodSandboxNotReady", "pod sandbox is not ready"},
		"init to be done":    {newWorld(inits("a", "b")).with(ready, seen(exited("a", 0, 0))), "Initialized", "False", "ContainersNotInitialized", "containers with incomplete status: [b]"},
		"init done":          {newWorld(inits("a")).with(ready, seen(exited("a", 0, 0))), "Initialized", "True", "", ""},
		"init out of memory": {newWorld(inits("a")).with(ready, seen(oom("a"))), "Initialized", "False", "ContainersNotInitialized", "containers with incomplete status: [a]"},
		"init pruned":        {newWorld(inits("a")).with(ready, seen(created("web", 0))), "Initialized", "True", "", ""},
		"not ready":          {newWorld(sidecar("m"), containers("web", "b")).with(ready, seen(running("b", 0))), "Ready", "False", "ContainersNotReady", "containers with unready status: [m web]"},
		"succeeded":          {newWorld(restart("Never")).with(ready, seen(exited("web", 0, 0))), "ContainersReady", "False", "PodCompleted", ""},
		"failed":             {newWorld(restart("Never")).with(ready, seen(exited("web", 0, 1))), "Ready", "False", "PodFailed", ""},
		"gate": {
			newWorld(func(p *v1.Pod) { p.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "lb"}} }).with(ready, seen(running("web", 0))),
			"Ready", "False", "ReadinessGatesNotReady", `corresponding condition of pod readiness gate "lb" does not exist.`,
		},
		"scheduled": {newWorld(), "PodScheduled", "True", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := get(tc.w.with(admitted).compute(), tc.kind)
			require.Equal(t, c{
				Type: tc.kind, Status: tc.status, Reason: tc.reason, Message: tc.message,
				ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(at(100)),
			}, got)
		})
	}
}

func oom(name string) pod.Container {
	c := exited(name, 0, 0)
	c.Exit.Reason = "OOMKilled"
	return c
}

func TestTransitionTimesAndForeignConditionsAreKept(t *testing.T) {
	w := newWorld().with(admitted, ready, seen(running("web", 0)))
	old := metav1.NewTime(at(20))
	foreign := v1.PodCondition{Type: "example.com/lb", Status: v1.ConditionTrue, LastTransitionTime: old}
	w.prev = &v1.PodStatus{Conditions: []v1.PodCondition{
		foreign,
		{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: old},
		{Type: v1.ContainersReady, Status: v1.ConditionFalse, LastTransitionTime: old},
	}}
	got := w.compute()
	require.Equal(t, old, got.Conditions[2].LastTransitionTime, "Ready stayed True")
	require.Equal(t, metav1.NewTime(at(100)), got.Conditions[3].LastTransitionTime, "ContainersReady became True")
	require.Equal(t, foreign, got.Conditions[5])
}

func TestATerminalPhaseIsNeverLeft(t *testing.T) {
	w := newWorld().api().with(admitted, ready, seen(running("web", 0)))
	w.prev = &v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted", Message: "low"}
	got := w.compute()
	require.Equal(t, v1.PodFailed, got.Phase)
	require.Equal(t, "Evicted", got.Reason)
	require.Equal(t, "low", got.Message)

	w = newWorld().api().with(admitted)
	w.pod.Status.Phase = v1.PodSucceeded
	require.Equal(t, v1.PodSucceeded, w.compute().Phase, "the API server's phase")
}

// After a restart of the agent, a list shows an earlier run of the job before anybody asked how that one ended.
func TestAFinishedPodKeepsItsPhaseOverARestart(t *testing.T) {
	last, earlier := exited("web", 1, 0), exited("web", 0, 1)
	earlier.Detailed, earlier.Exit = false, pod.Exit{}
	w := newWorld(restart(v1.RestartPolicyOnFailure)).with(
		pod.Restored{Record: pod.Record{Finished: true, Exits: []pod.Container{last}}}, seen(last, earlier))
	require.Equal(t, v1.PodSucceeded, w.compute().Phase)
}

func TestRejection(t *testing.T) {
	w := newWorld().with(pod.Rejected{Reason: "OutOfcpu", Message: "Node didn't have enough resource: cpu", At: at(5)})
	start := metav1.NewTime(at(5))
	require.Equal(t, v1.PodStatus{
		ObservedGeneration: 3, Phase: v1.PodFailed, Reason: "OutOfcpu",
		Message: "Pod was rejected: Node didn't have enough resource: cpu", StartTime: &start, QOSClass: v1.PodQOSBestEffort,
	}, w.compute())
}

func TestVerdictWaitsForTheContainers(t *testing.T) {
	w := newWorld().with(admitted, ready, seen(running("web", 0)))
	w.prev = &v1.PodStatus{Phase: v1.PodRunning}
	w.with(pod.Judged{Verdict: pod.Verdict{Reason: "Evicted", Message: "low on memory", Disruption: true, At: at(50)}})
	got := w.compute()
	require.Equal(t, v1.PodRunning, got.Phase)
	require.Empty(t, got.Reason)

	got = w.with(seen(exited("web", 0, 0))).compute()
	require.Equal(t, v1.PodFailed, got.Phase)
	require.Equal(t, "Evicted", got.Reason)
	last := got.Conditions[len(got.Conditions)-1]
	require.Equal(t, v1.DisruptionTarget, last.Type)
	require.Equal(t, "TerminationByKubelet", last.Reason)
}

func TestRestartCount(t *testing.T) {
	for name, tc := range map[string]struct {
		w    *world
		want int32
	}{
		"attempt":                   {newWorld().with(admitted, ready, seen(running("web", 4))), 4},
		"lost, to be started again": {newWorld().with(admitted, ready, seen(running("web", 4)), seen(gone(running("web", 4)))), 5},
		"lost while it is deleted":  {newWorld().with(admitted, ready, seen(running("web", 4)), deleted, seen(gone(running("web", 4)))), 4},
		"only the record knows":     {newWorld().with(pod.Restored{Record: pod.Record{UID: "u", Restarts: map[string]uint32{"web": 3}}}), 2},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, tc.w.compute().ContainerStatuses[0].RestartCount) })
	}
}

func TestProbes(t *testing.T) {
	w := newWorld(sidecar("m")).with(admitted, ready, seen(running("m", 0), running("web", 0)))
	w.probes = func(c *v1.Container, id string) (bool, bool) {
		require.Equal(t, c.Name+"0", id)
		return c.Name == "web", false
	}
	got := w.compute()
	require.True(t, *got.ContainerStatuses[0].Started)
	require.False(t, got.ContainerStatuses[0].Ready)
	require.False(t, *got.InitContainerStatuses[0].Started)
}

func TestHostNetworkPodHasTheNodesAddresses(t *testing.T) {
	host := func(p *v1.Pod) { p.Spec.HostNetwork = true }
	require.Empty(t, newWorld(host).compute().PodIP)
	w := newWorld(host).with(pod.Observed{Partial: true, Sandboxes: []pod.Sandbox{{ID: "s", Ready: true, HostNetwork: true, Detailed: true}}})
	got := w.compute()
	require.Equal(t, "192.0.2.1", got.PodIP)
	require.Len(t, got.PodIPs, 2)
	require.Equal(t, v1.ConditionTrue, got.Conditions[0].Status)
}

func TestStatusesAreSorted(t *testing.T) {
	got := newWorld(containers("c", "a", "b"), inits("z", "y")).compute()
	names := func(list []v1.ContainerStatus) (out string) {
		for _, st := range list {
			out += st.Name
		}
		return out
	}
	require.Equal(t, "abc", names(got.ContainerStatuses))
	require.Equal(t, "zy", names(got.InitContainerStatuses))
}

func TestTheSameFactsGiveTheSameStatus(t *testing.T) {
	w := newWorld(containers("c", "a", "b"), inits("z", "y")).with(admitted, ready, seen(running("z", 0)))
	first := w.compute()
	w.prev = &first
	require.Empty(t, cmp.Diff(first, w.compute()))
}

func TestAPodWithoutASpecHasNoStatus(t *testing.T) {
	s, _ := pod.Fold(nil, ready)
	require.Equal(t, v1.PodStatus{}, status.Compute(status.In{State: s}))
}

func BenchmarkCompute(b *testing.B) {
	w := newWorld(containers("a", "b"), inits("i")).with(admitted, ready, seen(exited("i", 0, 0), running("a", 0), running("b", 0)))
	s, _ := pod.Fold(nil, pod.SpecSet{Spec: &pod.Spec{Pod: w.pod, Source: w.source, Seen: t0}})
	for _, c := range w.changes {
		s, _ = pod.Fold(s, c)
	}
	in := status.In{Now: at(100), State: s, Runtime: "containerd", HostIPs: []string{"192.0.2.1"}}
	prev := status.Compute(in)
	in.Prev = &prev
	b.ReportAllocs()
	for b.Loop() {
		status.Compute(in)
	}
}

func TestLastWordsShareALimit(t *testing.T) {
	long := exited("web", 0, 1)
	long.Exit.Message = strings.Repeat("é", 4096) // two bytes each
	for n, want := range map[int]int{1: 8192, 2: 6144, 5: 2456} {
		w := newWorld(containers(append([]string{"web"}, "a", "b", "c", "d")[:n]...)).with(admitted, ready, seen(long))
		got := w.compute().ContainerStatuses
		i := slices.IndexFunc(got, func(st v1.ContainerStatus) bool { return st.Name == "web" })
		require.Len(t, got[i].State.Terminated.Message, want)
		require.True(t, utf8.ValidString(got[i].State.Terminated.Message))
	}
}

// An event tells that a container ended before the runtime was asked how: the
// phase, which is never left once it is terminal, waits for that.
func TestAnEndOfWhichNothingIsKnownDecidesNothing(t *testing.T) {
	vague := exited("web", 0, 0)
	vague.Detailed, vague.Exit = false, pod.Exit{}
	w := newWorld(restart(v1.RestartPolicyNever)).with(admitted, ready, seen(vague))
	require.Equal(t, v1.PodRunning, w.compute().Phase)
	w = newWorld(restart(v1.RestartPolicyNever)).with(admitted, ready, seen(exited("web", 0, 3)))
	require.Equal(t, v1.PodFailed, w.compute().Phase)

	next := pod.Container{ID: "web-1", Name: "web", Attempt: 1, SandboxID: "s", State: pod.Created, CreatedAt: at(50), Detailed: true}
	w = newWorld(restart(v1.RestartPolicyNever)).with(admitted, ready, seen(exited("web", 0, 3), next))
	require.Equal(t, v1.PodRunning, w.compute().Phase, "a rule for exit codes started it again")
}
