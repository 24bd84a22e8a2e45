package graph_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/graph"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is what pods share, all fine unless said otherwise.
type world struct {
	unsynced  []string
	foreign   []string
	holder    pod.Key
	noNetwork string
	waiting   []string
	noResize  string
}

func (w world) Configured(s string) bool { return !slices.Contains(w.foreign, s) }
func (w world) Synced(s string) bool     { return !slices.Contains(w.unsynced, s) }
func (w world) NameHolder(*pod.State) (pod.Key, bool) {
	return w.holder, w.holder != ""
}
func (w world) NetworkReady() (bool, string) { return w.noNetwork == "", w.noNetwork }
func (w world) Resizable(*pod.State) (bool, string, string) {
	return w.noResize == "", w.noResize, "because"
}

func (w world) Room(*pod.State) (bool, []string) {
	return len(w.waiting) == 0, w.waiting
}

func config() *graph.Config {
	return &graph.Config{
		CrashInitial: 10 * time.Second, CrashMax: 300 * time.Second, RuntimeSource: "pleg", Kept: 1,
		ContainerHash: func(name, image string) string { return name + "=" + image },
		Registry:      func(string) string { return "r" },
	}
}

// always is a container's restart policy that makes an init container a sidecar.
var always = v1.ContainerRestartPolicyAlways

func aPod(change ...func(*v1.PodSpec)) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"}}
	p.Spec = v1.PodSpec{
		RestartPolicy: v1.RestartPolicyAlways,
		Containers:    []v1.Container{{Name: "c", Image: "img"}},
	}
	for _, f := range change {
		f(&p.Spec)
	}
	return p
}

func withInits(s *v1.PodSpec) {
	s.InitContainers = []v1.Container{{Name: "i1", Image: "img"}, {Name: "side", Image: "img", RestartPolicy: &always}, {Name: "i2", Image: "img"}}
}

func never(s *v1.PodSpec) { s.RestartPolicy = v1.RestartPolicyNever }

// fold makes a state of changes to a pod that was admitted.
func fold(p *v1.Pod, changes ...pod.Change) *pod.State {
	s, _ := pod.Fold(nil, pod.SpecSet{Spec: &pod.Spec{Pod: p, Source: pod.SourceFile, Seen: now.Add(-time.Minute)}})
	for _, c := range changes {
		s, _ = pod.Fold(s, c)
	}
	return s
}

var admitted = pod.Admitted{At: now.Add(-time.Minute)}

func sandbox(ready bool) pod.Change {
	return pod.Observed{Partial: true, Sandboxes: []pod.Sandbox{{
		ID: "s0", Ready: ready, IPs: []string{"10.0.0.1"}, Detailed: true, CreatedAt: now.Add(-time.Minute),
	}}}
}

func container(name string, attempt uint32, change func(*pod.Container)) pod.Change {
	c := pod.Container{
		ID: fmt.Sprintf("%s-%d", name, attempt), Name: name, Attempt: attempt, SandboxID: "s0", State: pod.Running,
		Hash: name + "=img", Detailed: true, CreatedAt: now.Add(-time.Minute), StartedAt: now.Add(-time.Minute),
	}
	if change != nil {
		change(&c)
	}
	return pod.Observed{Partial: true, Containers: []pod.Container{c}}
}

func exited(code int32) func(*pod.Container) {
	return func(c *pod.Container) {
		c.State, c.Exit = pod.Exited, pod.Exit{Code: code, Reason: "Error", FinishedAt: now.Add(-time.Second)}
	}
}

// look builds the graph and returns, for each stage that has something to do,
// what it is and what becomes of it when all the others that have nothing to do
// are done.
func look(s *pod.State, w world) map[string]string {
	g := graph.Build(graph.In{Now: now, State: s, World: w, Config: config()}, nil)
	memo, _, _, _ := dag.Decide(now, nil, g)
	out := map[string]string{}
	for _, n := range g.Nodes() {
		if e := memo[n.ID]; e.State != dag.Done {
			out[n.ID.String()] = e.State.String() + ": " + n.Key.Do
			if e.State == dag.Held {
				out[n.ID.String()] = "held: " + e.Why
			}
		}
	}
	return out
}

func TestNewPodIsAdmittedWhileItsImagesAreLookedUp(t *testing.T) {
	require.Equal(t, map[string]string{
		"admit":           "queued: admit",
		"cgroup":          "waiting: ensure cgroup",
		"dirs":            "waiting: ensure directories",
		"image.look[img]": "queued: look up",
		"image[img]":      "waiting: pull",
		"sandbox":         "waiting: make sandbox, attempt 0",
		"container[c]":    "waiting: start attempt 0",
	}, look(fold(aPod()), world{}))
}

func TestAdmissionIsHeld(t *testing.T) {
	for want, w := range map[string]world{
		"held: the runtime has not been listed yet":                                     {unsynced: []string{"pleg"}},
		"held: source file has not told all it knows yet: running pods keep their room": {unsynced: []string{"file"}},
		"held: name lock: another pod p_ns (UID old) is still here":                     {holder: "old"},
		"held: no room until these pods are gone: ns/a, ns/b":                           {waiting: []string{"ns/a", "ns/b"}},
	} {
		got := look(fold(aPod()), w)
		require.Contains(t, []string{got["admit"], got["observe"]}, want)
		require.Equal(t, "queued: look up", got["image.look[img]"], "images do not wait for admission")
	}
}

func TestSandboxWaitsForTheNetworkUnlessItIsTheHosts(t *testing.T) {
	w := world{noNetwork: "no plugin"}
	require.Equal(t, "waiting: make sandbox, attempt 0", look(fold(aPod(), admitted), w)["sandbox"], "for its cgroup")
	g := graph.Build(graph.In{Now: now, State: fold(aPod(), admitted), World: w, Config: config()}, nil)
	n, _ := g.Node(dag.ID{Kind: graph.KindSandbox})
	require.Equal(t, "network is not ready: no plugin", n.Hold.Why)
	host := aPod(func(s *v1.PodSpec) { s.HostNetwork = true })
	g = graph.Build(graph.In{Now: now, State: fold(host, admitted), World: w, Config: config()}, nil)
	n, _ = g.Node(dag.ID{Kind: graph.KindSandbox})
	require.Empty(t, n.Hold.Why)
}

func TestRunningPodHasNothingToDo(t *testing.T) {
	got := look(fold(aPod(), admitted, sandbox(true), container("c", 0, nil)), world{})
	require.Equal(t, map[string]string{"record": "queued: write state file"}, got)
}

func TestWhatRunsIsComparedWithTheSpec(t *testing.T) {
	base := []pod.Change{admitted, sandbox(true)}
	for name, tt := range map[string]struct {
		spec    func(*v1.PodSpec)
		changes []pod.Change
		want    map[string]string // the stages of containers and sandboxes
	}{
		"image changed: stopped, then started again": {
			changes: []pod.Change{container("c", 0, func(c *pod.Container) { c.Hash = "c=old" })},
			want: map[string]string{
				"stop[c]":      "queued: stop c-0: Container c definition changed, will be restarted",
				"container[c]": "waiting: start attempt 1",
			},
		},
		"container that the spec lacks: stopped": {
			changes: []pod.Change{container("c", 0, nil), container("x", 0, nil)},
			want:    map[string]string{"stop[x]": "queued: stop x-0: not in the pod's spec"},
		},
		"created container of an earlier try: started": {
			changes: []pod.Change{container("c", 0, func(c *pod.Container) { c.State = pod.Created })},
			want:    map[string]string{"container[c]": "waiting: start attempt 0"},
		},
		"first exit: started again at once": {
			changes: []pod.Change{container("c", 0, exited(1))},
			want:    map[string]string{"container[c]": "waiting: start attempt 1"},
		},
		"lost container: started again": {
			changes: []pod.Change{
				container("c", 0, nil),
				pod.Observed{Began: now, Sandboxes: []pod.Sandbox{{ID: "s0", Ready: true, IPs: []string{"10.0.0.1"}, Detailed: true}}},
			},
			want: map[string]string{"container[c]": "waiting: start attempt 1"},
		},
		"sandbox not ready: everything stops, then a new one": {
			changes: []pod.Change{container("c", 0, nil), sandbox(false)},
			want: map[string]string{
				"stop[c]":      "queued: stop c-0: its sandbox is not usable",
				"sandbox.stop": "waiting: stop sandbox s0",
				"sandbox":      "waiting: make sandbox, attempt 1",
				"container[c]": "waiting: start attempt 1",
			},
		},
		"init container runs: the others wait for its end": {
			spec:    withInits,
			changes: []pod.Change{container("i1", 0, nil)},
			want: map[string]string{
				"init[i1]":     "held: init container i1 is running",
				"init[side]":   "waiting: start attempt 0",
				"init[i2]":     "waiting: start attempt 0",
				"container[c]": "waiting: start attempt 0",
			},
		},
		"sidecar runs: the next init container's turn": {
			spec:    withInits,
			changes: []pod.Change{container("i1", 0, exited(0)), container("side", 0, nil)},
			want: map[string]string{
				"init[i2]":     "waiting: start attempt 0",
				"container[c]": "waiting: start attempt 0",
			},
		},
		"init container was removed after its end: not run again": {
			spec: withInits,
			changes: []pod.Change{
				container("side", 0, nil), container("i2", 0, exited(0)),
			},
			want: map[string]string{"container[c]": "waiting: start attempt 0"},
		},
		"initialized: an init container that is gone is not run again": {
			spec:    withInits,
			changes: []pod.Change{container("side", 0, nil), container("c", 0, nil)},
			want:    map[string]string{},
		},
		"initialized: a sidecar that ended starts beside the app": {
			spec:    withInits,
			changes: []pod.Change{container("side", 0, exited(1)), container("c", 0, nil)},
			want:    map[string]string{"init[side]": "waiting: start attempt 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var change []func(*v1.PodSpec)
			if tt.spec != nil {
				change = append(change, tt.spec)
			}
			got := look(fold(aPod(change...), slices.Concat(base, tt.changes)...), world{})
			for _, k := range []string{"record", "cgroup", "dirs", "image[img]", "image.look[img]"} {
				delete(got, k)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestOldSandboxIsRemovedWhenItHoldsNothing(t *testing.T) {
	old := pod.Observed{Partial: true, Sandboxes: []pod.Sandbox{{ID: "s1", Attempt: 1, Ready: true, IPs: []string{"10.0.0.2"}, Detailed: true, CreatedAt: now}}}
	in1 := func(c *pod.Container) { c.SandboxID = "s1" }
	s := fold(aPod(), admitted, sandbox(true), pod.SandboxStopped{ID: "s0"}, old, container("c", 0, exited(0)), container("c", 1, in1))
	require.NotContains(t, look(s, world{}), "prune", "it holds the last exit")
	s, _ = pod.Fold(s, pod.ContainerRemoved{ID: "c-0"})
	require.Equal(t, "queued: remove 0 dead containers and 1 old sandboxes", look(s, world{})["prune"])
}

func TestCrashLoopIsHeldFromTheEndOfTheRun(t *testing.T) {
	s := fold(aPod(), admitted, sandbox(true), container("c", 0, exited(1)), container("c", 1, exited(1)), container("c", 2, exited(1)))
	g := graph.Build(graph.In{Now: now, State: s, World: world{}, Config: config()}, nil)
	n, _ := g.Node(dag.ID{Kind: graph.KindContainer, Of: "c"})
	require.Equal(t, dag.Hold{Until: now.Add(19 * time.Second), Why: "crash-loop back-off 20s"}, n.Hold)
}

func TestPodWithoutSpecIsClaimedByItsSourceOnly(t *testing.T) {
	found, _ := pod.Fold(nil, pod.Observed{
		Identity:  pod.Identity{Name: "p", Namespace: "ns", UID: "u", Source: "file"},
		Sandboxes: []pod.Sandbox{{ID: "s0", Ready: true}},
	})
	require.Equal(t, "queued: take down: no source wants it", look(found, world{})["claim"])
	require.Equal(t, "held: source file has not told all it knows yet", look(found, world{unsynced: []string{"file"}})["claim"])
	require.Equal(t, "held: source file is not configured here: left alone", look(found, world{foreign: []string{"file"}})["claim"])
}

func TestFinishedPodWhoseManifestIsGoneIsClaimed(t *testing.T) {
	r := pod.Record{UID: "u", Name: "p", Namespace: "ns", Source: "file", Finished: true}
	s, _ := pod.Fold(nil, pod.Restored{Record: r})
	require.Equal(t, "queued: take down: no source wants it", look(s, world{})["claim"])
}

func TestCompletedPodIsTakenDownAndKept(t *testing.T) {
	s := fold(aPod(never), admitted, sandbox(true), container("c", 0, exited(0)))
	require.Equal(t, pod.Finishing, s.Phase)
	got := look(s, world{})
	require.Equal(t, "queued: stop sandbox s0", got["sandbox.stop"])
	require.Equal(t, "waiting: settle", got["settle"])
	require.NotContains(t, got, "containers.remove")

	s, _ = pod.Fold(s, pod.Facts{pod.SandboxStopped{ID: "s0"}, pod.Settled{}})
	require.Equal(t, map[string]string{"record": "queued: write state file"}, look(s, world{}))
}

func TestRemovedPodLosesEverythingInOrder(t *testing.T) {
	s := fold(aPod(withInits), admitted, sandbox(true), container("side", 0, nil), container("c", 0, nil),
		pod.SpecGone{Source: pod.SourceFile, At: now})
	require.Equal(t, pod.Deleting, s.Phase)
	got := look(s, world{})
	require.Equal(t, "queued: stop c-0: Stopping container c", got["stop[c]"])
	require.Equal(t, "waiting: stop side-0: Stopping container side", got["stop[side]"], "sidecars after the others")
	for _, k := range []string{"sandbox.stop", "volume.unmount", "cgroup.remove", "containers.remove", "sandbox.remove", "dirs.remove", "forget"} {
		require.Contains(t, got[k], "waiting: ", k)
	}
}

func TestTeardownSaysNothingAboutWhatIsInFlight(t *testing.T) {
	s := fold(aPod(), admitted, pod.SpecGone{Source: pod.SourceFile, At: now})
	making := dag.Memo{{Kind: graph.KindSandbox}: {State: dag.Running, Key: dag.Key{Do: "make sandbox, attempt 0"}, Owns: "u/sandbox", Atomic: true}}
	g := graph.Build(graph.In{Now: now, State: s, World: world{}, Config: config()}, nil)
	memo, start, cancel, _ := dag.Decide(now, making, g)
	require.Equal(t, dag.Waiting, memo[dag.ID{Kind: graph.KindSandboxStop}].State)
	require.Empty(t, cancel)
	require.NotContains(t, start, dag.ID{Kind: graph.KindForget})
}

func TestUnsureObjectIsLookedAtBeforeAnythingElse(t *testing.T) {
	s := fold(aPod(), admitted, pod.Wrote{Object: "u/sandbox", At: now, Unsure: true})
	got := look(s, world{})
	require.Equal(t, "held: the last write has just ended", got["observe"])
	s = fold(aPod(), admitted, pod.Wrote{Object: "u/sandbox", At: now.Add(-1), Unsure: true})
	got = look(s, world{})
	require.Equal(t, "queued: look again: the end of the last write is not known", got["observe"])
	require.Equal(t, "waiting: make sandbox, attempt 0", got["sandbox"])
}

func TestDemandStaysTheSameWhileContainersAreMadeOneAfterTheOther(t *testing.T) {
	two := aPod(func(s *v1.PodSpec) { s.Containers = append(s.Containers, v1.Container{Name: "d", Image: "img"}) })
	key := func(s *pod.State, kind, of string) dag.Key {
		g := graph.Build(graph.In{Now: now, State: s, World: world{}, Config: config()}, nil)
		n, _ := g.Node(dag.ID{Kind: kind, Of: of})
		return n.Key
	}
	before := fold(two, admitted)
	made := fold(two, admitted, sandbox(true))
	half := fold(two, admitted, sandbox(true), container("c", 0, nil))
	for _, st := range [][2]string{{graph.KindImageLook, "img"}, {graph.KindCgroup, ""}, {graph.KindDirs, ""}} {
		require.NotZero(t, key(before, st[0], st[1]))
		require.Equal(t, key(before, st[0], st[1]), key(made, st[0], st[1]))
		require.Equal(t, key(before, st[0], st[1]), key(half, st[0], st[1]))
	}
	all := fold(two, admitted, sandbox(true), container("c", 0, nil), container("d", 0, nil))
	require.Zero(t, key(all, graph.KindCgroup, ""))
}

func TestUnmountWaitsForAMountInFlight(t *testing.T) {
	p := aPod(func(s *v1.PodSpec) { s.Volumes = []v1.Volume{{Name: "v"}} })
	s := fold(p, admitted, pod.SpecGone{Source: pod.SourceFile, At: now})
	volume := dag.ID{Kind: graph.KindVolume, Of: "v"}
	mounting := dag.Memo{volume: {State: dag.Running, Key: dag.Key{Do: "ensure volume"}, Owns: "u/volume/v", Atomic: true}}
	g := graph.Build(graph.In{Now: now, State: s, World: world{}, Config: config()}, nil)
	memo, _, cancel, _ := dag.Decide(now, mounting, g)
	require.Empty(t, cancel)
	unmount := memo[dag.ID{Kind: graph.KindUnmount}]
	require.Equal(t, dag.Waiting, unmount.State, "what the mount makes would not be found")
	require.Contains(t, unmount.On, volume)
	require.Contains(t, look(s, world{})["volume.unmount"], "queued")
}

func TestAnotherLifeOfTheUIDIsTornDownAgain(t *testing.T) {
	keys := func(s *pod.State) map[dag.ID]dag.Key {
		out := map[dag.ID]dag.Key{}
		for _, n := range graph.Build(graph.In{Now: now, State: s, World: world{}, Config: config()}, nil).Nodes() {
			if n.Key != (dag.Key{}) && n.ID.Kind != graph.KindRecord {
				out[n.ID] = n.Key
			}
		}
		return out
	}
	gone := pod.SpecGone{Source: pod.SourceFile, At: now}
	first := fold(aPod(), admitted, gone)
	second := fold(aPod(), admitted, gone, pod.SpecSet{Spec: &pod.Spec{Pod: aPod(), Source: pod.SourceFile, Seen: now}},
		pod.Gone{At: now}, gone)
	require.Equal(t, pod.Deleting, second.Phase)
	was := keys(first)
	require.NotEmpty(t, was)
	for id, k := range keys(second) {
		require.NotEqual(t, was[id], k, "%s counts as done", id)
	}
}

func TestContainerNeedsItsCgroupAlsoInASandboxThatIsThere(t *testing.T) {
	got := look(fold(aPod(), admitted, sandbox(true)), world{})
	require.Contains(t, got["cgroup"], "queued")
	g := graph.Build(graph.In{Now: now, State: fold(aPod(), admitted, sandbox(true)), World: world{}, Config: config()}, nil)
	n, _ := g.Node(dag.ID{Kind: graph.KindContainer, Of: "c"})
	require.Contains(t, n.Need, dag.ID{Kind: graph.KindCgroup}, "its request names the cgroup")
	require.Contains(t, n.Need, dag.ID{Kind: graph.KindDirs})
}

func TestClockThatWasSetBackHoldsNothing(t *testing.T) {
	late := now.Add(time.Hour)
	dead := pod.Observed{Partial: true, Sandboxes: []pod.Sandbox{{ID: "s0", CreatedAt: late, Detailed: true}}}
	g := graph.Build(graph.In{Now: now, State: fold(aPod(), admitted, dead), World: world{}, Config: config()}, nil)
	n, _ := g.Node(dag.ID{Kind: graph.KindSandbox})
	require.NotZero(t, n.Key)
	require.Zero(t, n.Hold)
	changes := []pod.Change{admitted, sandbox(true)}
	for i := range uint32(3) {
		changes = append(changes, container("c", i, func(c *pod.Container) {
			exited(1)(c)
			c.Exit.FinishedAt = late
		}))
	}
	require.NotContains(t, look(fold(aPod(), changes...), world{})["container[c]"], "held")
}

func TestOutdatedContainerThatWasNeverStartedIsReplaced(t *testing.T) {
	made := container("c", 0, func(c *pod.Container) { c.State, c.Hash = pod.Created, "c=old" })
	require.Contains(t, look(fold(aPod(), admitted, sandbox(true), made), world{})["container[c]"], "start attempt 1")
}

func judged(grace time.Duration) pod.Change {
	return pod.Judged{Verdict: pod.Verdict{Reason: "Evicted", At: now.Add(-time.Second), Grace: &grace}}
}

func TestVerdictIsKeptBeforeAnythingIsStopped(t *testing.T) {
	s := fold(aPod(), admitted, sandbox(true), container("c", 0, nil), judged(time.Minute))
	got := look(s, world{})
	require.Equal(t, "queued: write state file", got["record"])
	require.Equal(t, "waiting: stop c-0: Stopping container c", got["stop[c]"])

	g := graph.Build(graph.In{Now: now, State: s, World: world{}, Config: config()}, nil)
	memo, _, _, _ := dag.Decide(now, nil, g)
	record := memo[dag.ID{Kind: graph.KindRecord}]
	record.State, record.Err, record.Until = dag.Failed, fmt.Errorf("disk full"), now.Add(time.Hour)
	memo[dag.ID{Kind: graph.KindRecord}] = record
	memo, _, _, _ = dag.Decide(now, memo, g)
	require.Equal(t, dag.Queued, memo[dag.ID{Kind: graph.KindStop, Of: "c"}].State, "a full disk keeps no pod from ending")
}

func TestActiveDeadlineCountsFromTheStartTime(t *testing.T) {
	p := aPod(func(s *v1.PodSpec) { s.ActiveDeadlineSeconds = new(int64(90)) })
	require.Zero(t, node(t, fold(p), graph.KindDeadline, "").Key, "not before the pod was admitted")

	s := fold(p, admitted)
	n := node(t, s, graph.KindDeadline, "")
	require.Equal(t, s.StartTime.Add(90*time.Second), n.Hold.Until)
	require.True(t, n.Hold.OnTime)
	require.Equal(t, "waiting: make sandbox, attempt 0", look(s, world{})["sandbox"], "for its cgroup")

	p.Spec.ActiveDeadlineSeconds = new(int64(60))
	late := fold(p, admitted, container("c", 0, exited(1)), sandbox(true))
	require.Equal(t, "queued: end the pod: its active deadline is over", look(late, world{})["deadline"])
	for _, kind := range []string{graph.KindSandbox, graph.KindContainer} {
		of := map[string]string{graph.KindContainer: "c"}[kind]
		require.Contains(t, node(t, late, kind, of).After, dag.ID{Kind: graph.KindDeadline}, "nothing is made once the time is over")
	}
}

func TestTeardownWaitsForAMountOfAnEarlierSpec(t *testing.T) {
	old := aPod(func(s *v1.PodSpec) { s.Volumes = []v1.Volume{{Name: "v"}} })
	edited := pod.SpecSet{Spec: &pod.Spec{Pod: aPod(), Source: pod.SourceFile, Seen: now}}
	s := fold(old, admitted, edited, pod.SpecGone{Source: pod.SourceFile, At: now})
	require.Contains(t, node(t, s, graph.KindUnmount, "").Need, dag.ID{Kind: graph.KindVolume, Of: "v"})
	require.Equal(t, "u/volume/v", node(t, s, graph.KindVolume, "v").Owns)
}

func TestAServerThatHangsHoldsUpNobodyElsesVolumes(t *testing.T) {
	p := aPod(func(s *v1.PodSpec) {
		s.Volumes = []v1.Volume{{Name: "own"}, {Name: "far", VolumeSource: v1.VolumeSource{NFS: &v1.NFSVolumeSource{Server: "files.example", Path: "/"}}}}
	})
	g := graph.Build(graph.In{Now: now, State: fold(p, admitted), World: world{}, Config: config()}, nil)
	classes := map[string]string{}
	for _, n := range g.Nodes() {
		if n.ID.Kind == graph.KindVolume {
			classes[n.ID.Of] = n.Class
		}
	}
	require.Equal(t, map[string]string{"own": "mount", "far": "mount/files.example"}, classes)
}
