package graph_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/graph"
)

func execProbe() *v1.Probe {
	return &v1.Probe{
		ProbeHandler:        v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"true"}}},
		InitialDelaySeconds: 90, PeriodSeconds: 10, FailureThreshold: 1, SuccessThreshold: 1,
	}
}

func node(t *testing.T, s *pod.State, kind, of string) dag.Node[pod.Facts] {
	t.Helper()
	g := graph.Build(graph.In{Now: now, State: s, World: world{}, Config: config()}, nil)
	n, ok := g.Node(dag.ID{Kind: kind, Of: of})
	require.True(t, ok)
	return n
}

func probed(kind string, verdict pod.ProbeVerdict) pod.Change {
	return pod.Probed{Probe: pod.ProbeKey{Container: "c", Kind: kind}, State: pod.ProbeState{
		ID: "c-0", Verdict: verdict, Since: now.Add(-10 * time.Second), Checked: now.Add(-10 * time.Second), Due: now.Add(time.Second),
	}}
}

func TestFirstCheckIsDueAtTheInitialDelayExactly(t *testing.T) {
	p := aPod(func(s *v1.PodSpec) { s.Containers[0].ReadinessProbe = execProbe() })
	s := fold(p, admitted, sandbox(true), container("c", 0, nil))
	n := node(t, s, graph.KindProbe, "c/readiness")
	require.Equal(t, dag.Hold{Until: now.Add(30 * time.Second), Why: "the readiness probe has not passed; next check"}, n.Hold)
	require.Equal(t, "probe-exec", n.Class)
	require.False(t, n.Atomic)

	s, _ = pod.Fold(s, probed("readiness", "passed"))
	require.True(t, node(t, s, graph.KindProbe, "c/readiness").Hold.OnTime)
}

func TestLivenessWaitsForStartup(t *testing.T) {
	p := aPod(func(s *v1.PodSpec) {
		s.Containers[0].StartupProbe, s.Containers[0].LivenessProbe = execProbe(), execProbe()
	})
	s := fold(p, admitted, sandbox(true), container("c", 0, nil))
	require.Zero(t, node(t, s, graph.KindProbe, "c/liveness").Key)
	require.NotZero(t, node(t, s, graph.KindProbe, "c/startup").Key)
	s, _ = pod.Fold(s, probed("startup", "passed"))
	require.NotZero(t, node(t, s, graph.KindProbe, "c/liveness").Key)
}

func TestFailedLivenessStopsTheContainerAfterItsHook(t *testing.T) {
	p := aPod(func(s *v1.PodSpec) {
		s.Containers[0].LivenessProbe = execProbe()
		s.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 5}}}
	})
	s := fold(p, admitted, sandbox(true), container("c", 0, nil), probed("liveness", "failed"))
	got := look(s, world{})
	require.Equal(t, "queued: run the preStop hook", got["prestop[c]"])
	require.Equal(t, "held: the preStop hook is running", got["stop[c]"])
	n := node(t, s, graph.KindStop, "c")
	require.Equal(t, "stop c-0: Container c failed liveness probe, will be restarted", n.Key.Do)
	require.Equal(t, now.Add(20*time.Second), n.Hold.Until, "one grace period from the verdict on")

	s, _ = pod.Fold(s, pod.HookEnded{Hook: pod.HookKey{ID: "c-0", Kind: "preStop"}, Failure: "it failed"})
	got = look(s, world{})
	require.NotContains(t, got, "prestop[c]")
	require.Equal(t, "queued: stop c-0: Container c failed liveness probe, will be restarted", got["stop[c]"], "a failed hook blocks nothing")
}

func TestSidecarThatHasNotStartedHoldsUpTheNextInitContainer(t *testing.T) {
	p := aPod(withInits, func(s *v1.PodSpec) { s.InitContainers[1].StartupProbe = execProbe() })
	s := fold(p, admitted, sandbox(true), container("i1", 0, exited(0)), container("side", 0, nil))
	got := look(s, world{})
	require.Equal(t, "held: the startup probe of sidecar side has not passed", got["init[side]"])
	require.Equal(t, "waiting: start attempt 0", got["init[i2]"])
}

func TestPostStartComesBeforeLaterContainersOnly(t *testing.T) {
	p := aPod(func(s *v1.PodSpec) {
		s.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 5}}}
		s.Containers = append(s.Containers, v1.Container{Name: "d", Image: "img"})
	})
	s := fold(p, admitted, sandbox(true), container("c", 0, nil))
	require.Equal(t, "queued: run the postStart hook", look(s, world{})["poststart[c]"])
	require.Contains(t, node(t, s, graph.KindContainer, "d").After, dag.ID{Kind: graph.KindPostStart, Of: "c"})

	s, _ = pod.Fold(s, pod.HookEnded{Hook: pod.HookKey{ID: "c-0", Kind: "postStart"}})
	require.NotContains(t, look(s, world{}), "poststart[c]")
	s, _ = pod.Fold(s, pod.HookEnded{Hook: pod.HookKey{ID: "c-0", Kind: "postStart"}, Failure: "no"})
	require.Equal(t, "queued: stop c-0: FailedPostStartHook", look(s, world{})["stop[c]"])
}

func TestReadinessIsCheckedOnWhilePodEnds(t *testing.T) {
	p := aPod(func(s *v1.PodSpec) {
		s.Containers[0].LivenessProbe, s.Containers[0].ReadinessProbe = execProbe(), execProbe()
	})
	s := fold(p, admitted, sandbox(true), container("c", 0, nil), pod.SpecGone{Source: pod.SourceFile, At: now})
	require.Zero(t, node(t, s, graph.KindProbe, "c/liveness").Key)
	require.NotZero(t, node(t, s, graph.KindProbe, "c/readiness").Key)
}

func TestStateFileStaysOutOfTheWayOfTheStart(t *testing.T) {
	record := func(s *pod.State) dag.Node[pod.Facts] { return node(t, s, graph.KindRecord, "") }
	starting := fold(aPod(), admitted, sandbox(true), container("c", 0, nil))
	h := record(starting).Hold
	require.Equal(t, starting.Admission.At.Add(time.Second), h.Until)
	require.True(t, h.OnTime)

	require.Zero(t, record(fold(aPod(), admitted, sandbox(true), container("c", 0, exited(0)))).Hold, "an end is kept at once")
	require.Zero(t, record(fold(aPod(), admitted, sandbox(true), container("c", 1, nil))).Hold, "a restart is kept at once")
	require.Zero(t, record(fold(aPod(), admitted, pod.SpecGone{Source: pod.SourceFile, At: now})).Hold, "a removal is kept at once")
}

func TestFilesAboutAPodFollowItsSpec(t *testing.T) {
	about := func(label string) *v1.Pod {
		p := aPod(func(s *v1.PodSpec) {
			s.Volumes = []v1.Volume{
				{Name: "about", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{}}},
				{Name: "scratch", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
			}
			s.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "about", MountPath: "/a"}, {Name: "scratch", MountPath: "/s"}}
		})
		p.Labels = map[string]string{"v": label}
		return p
	}
	s := fold(about("1"), admitted, sandbox(true), container("c", 0, nil))
	was := node(t, s, graph.KindVolume, "about").Key
	require.NotZero(t, was)
	require.Zero(t, node(t, s, graph.KindVolume, "scratch").Key)
	s, _ = pod.Fold(s, pod.SpecSet{Spec: &pod.Spec{Pod: about("2"), Sum: 2, Source: pod.SourceFile, Seen: now}})
	require.NotEqual(t, was, node(t, s, graph.KindVolume, "about").Key, "they are written again")
	require.Zero(t, node(t, s, graph.KindVolume, "scratch").Key)
	require.Zero(t, node(t, s, graph.KindContainer, "c").Key, "nothing else is done")
}

func TestEveryStepOfAResizeIsKept(t *testing.T) {
	key := func(r *pod.Resize) dag.Key {
		s := fold(aPod(), admitted, sandbox(true), container("c", 1, nil))
		s.Resize = r
		return node(t, s, graph.KindRecord, "").Key
	}
	one, other := map[string]string{"a": "a-0"}, map[string]string{"b": "b-0"}
	require.NotEqual(t, key(&pod.Resize{At: now, Left: one}), key(&pod.Resize{At: now, Left: other}), "another container is left")
	require.NotEqual(t, key(&pod.Resize{At: now, Pod: true}), key(&pod.Resize{At: now}), "the pod's cgroup is done")
	require.Equal(t, key(&pod.Resize{At: now, Left: one}), key(&pod.Resize{At: now, Left: map[string]string{"a": "a-0"}}))
}
