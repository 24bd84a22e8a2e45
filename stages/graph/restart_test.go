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

// restartsAll is a pod whose container c makes all start anew when it ends with 3.
func restartsAll(s *v1.PodSpec) {
	policy := v1.ContainerRestartPolicyNever
	s.InitContainers = []v1.Container{{Name: "i", Image: "img"}}
	s.Containers = []v1.Container{{Name: "c", Image: "img", RestartPolicy: &policy, RestartPolicyRules: []v1.ContainerRestartRule{{
		Action:    v1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{3}},
	}}}, {Name: "d", Image: "img"}}
}

func beforeRestart(code int32) []pod.Change {
	return []pod.Change{admitted, sandbox(true), container("i", 0, exited(0)), container("c", 0, exited(code)), container("d", 0, nil)}
}

func TestAnEndThatRestartsAll(t *testing.T) {
	p := aPod(restartsAll)
	s := fold(p, beforeRestart(3)...)
	require.Equal(t, pod.Active, s.Phase, "it is no end of the pod")
	require.Equal(t, map[string]string{
		"stop[d]":         "queued: stop d-0: Container d is stopped, because all containers of the pod are restarted",
		"record":          "queued: write state file",
		"restart.all":     "waiting: restart all containers: c ended with exit code 3",
		"cgroup":          "queued: ensure cgroup",
		"dirs":            "queued: ensure directories",
		"image.look[img]": "queued: look up",
		"image[img]":      "waiting: pull",
		"init[i]":         "waiting: start attempt 1",
		"container[c]":    "waiting: start attempt 1",
		"container[d]":    "waiting: start attempt 1",
	}, look(s, world{}))

	s, _ = pod.Fold(s, container("d", 0, exited(137)))
	require.Equal(t, []dag.ID{{Kind: graph.KindRecord}}, waits(s, graph.KindRestartAll, ""), "what the next agent has to know goes first")

	again, _ := pod.Fold(s, pod.Reset{IDs: []string{"i-0", "c-0", "d-0"}})
	require.Equal(t, pod.Active, again.Phase)
	require.Empty(t, again.Crashes, "no back-off")
	for _, name := range []string{"c", "d"} {
		kind := graph.KindContainer
		require.Equal(t, key(t, s, kind, name), key(t, again, kind, name), "the task is the same before and after")
		require.Contains(t, waits(again, kind, name), dag.ID{Kind: graph.KindInit, Of: "i"})
	}
	require.Equal(t, "start attempt 1", key(t, again, graph.KindInit, "i").Do)
	require.Zero(t, key(t, again, graph.KindRestartAll, ""))

	restored := fold(p, pod.Restored{Record: pod.RecordOf(s)}, pod.Observed{Began: now, Ended: now, Sandboxes: []pod.Sandbox{{ID: "s0", Ready: true, IPs: []string{"10.0.0.1"}}}})
	require.Equal(t, key(t, s, graph.KindRestartAll, ""), key(t, restored, graph.KindRestartAll, ""), "an agent that was killed after the removal of all goes on")

	restored = fold(p, pod.Restored{Record: pod.RecordOf(again)}, sandbox(true))
	require.Zero(t, key(t, restored, graph.KindRestartAll, ""), "it is done once")
	require.Equal(t, "start attempt 1", key(t, restored, graph.KindContainer, "d").Do)
}

func TestEndsThatRestartNotAll(t *testing.T) {
	for name, changes := range map[string][]pod.Change{
		"another exit code": beforeRestart(4),
		"killed by a probe": append(beforeRestart(3), pod.Probed{
			Probe: pod.ProbeKey{Container: "c", Kind: "liveness"}, State: pod.ProbeState{ID: "c-0", Verdict: "failed"},
		}),
		"killed for its postStart hook": append(beforeRestart(3), pod.HookEnded{Hook: pod.HookKey{ID: "c-0", Kind: "postStart"}, Failure: "no"}),
		"killed for its new image": {
			admitted, sandbox(true), container("d", 0, nil),
			container("c", 0, func(c *pod.Container) { exited(3)(c); c.Hash = "other" }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := aPod(restartsAll)
			p.Spec.Containers[0].LivenessProbe = &v1.Probe{}
			got := look(fold(p, changes...), world{})
			require.NotContains(t, got, "restart.all")
			require.NotContains(t, got, "stop[d]")
		})
	}
}

func TestRestartOfAllWaitsForAStartUnderWay(t *testing.T) {
	s := fold(aPod(restartsAll), admitted, sandbox(true), container("i", 0, exited(0)), container("c", 0, exited(3)))
	g := graph.Build(graph.In{Now: now, State: s, World: world{}, Config: config()}, nil)
	starting := dag.ID{Kind: graph.KindContainer, Of: "d"}
	memo := dag.Memo{starting: {State: dag.Running, Atomic: true, Owns: "u/container/d", Key: dag.Key{Do: "start attempt 0", In: 1}}}
	memo, _, _, _ = dag.Decide(now, memo, g)
	require.Contains(t, memo[dag.ID{Kind: graph.KindRestartAll}].On, dag.ID{Kind: graph.KindStop, Of: "d"})
}

func TestRestartsOfAllHaveAPause(t *testing.T) {
	s := fold(aPod(restartsAll), admitted, sandbox(true), container("c", 0, func(c *pod.Container) { exited(3)(c); c.StartedAt = now }))
	require.Equal(t, now.Add(time.Second), node(t, s, graph.KindRestartAll, "").Hold.Until)
}

func key(t *testing.T, s *pod.State, kind, of string) dag.Key {
	t.Helper()
	return node(t, s, kind, of).Key
}

// waits are the stages that one waits for.
func waits(s *pod.State, kind, of string) []dag.ID {
	g := graph.Build(graph.In{Now: now, State: s, World: world{}, Config: config()}, nil)
	memo, _, _, _ := dag.Decide(now, nil, g)
	return memo[dag.ID{Kind: kind, Of: of}].On
}

func TestAContainerThatWasResetAndIsThereIsStopped(t *testing.T) {
	shown := func(began time.Time, list ...pod.Container) pod.Change {
		sb := pod.Sandbox{ID: "s0", Ready: true, IPs: []string{"10.0.0.1"}, Detailed: true}
		return pod.Observed{Began: began, Ended: began, Sandboxes: []pod.Sandbox{sb}, Containers: list}
	}
	d := pod.Container{ID: "d-0", Name: "d", SandboxID: "s0", State: pod.Running, Detailed: true}
	s := fold(aPod(restartsAll), admitted, shown(now.Add(-9*time.Second), d), shown(now.Add(-8*time.Second)), pod.Reset{IDs: []string{"d-0"}},
		shown(now.Add(-7*time.Second), d))
	got := look(s, world{})
	require.Equal(t, "queued: stop d-0: all containers of the pod were restarted", got["stop[d]"])
	require.Equal(t, "waiting: start attempt 1", got["container[d]"])
}
