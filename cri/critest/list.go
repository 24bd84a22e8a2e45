package critest

import (
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
)

var listContract = []contract{
	{"list/sandboxes by ID, label and state", func(e *env) {
		a, b := e.run(waits), e.run(waits)
		require.NoError(e, e.Client.StopPodSandbox(e.ctx, b.id))
		e.until("sandbox is not ready", func() bool {
			return e.sandboxStatus(b).GetState() == runtimeapi.PodSandboxState_SANDBOX_NOTREADY
		})
		require.Subset(e, e.sandboxes(nil), []string{a.id, b.id})
		require.Equal(e, []string{a.id}, e.sandboxes(&runtimeapi.PodSandboxFilter{Id: a.id}))
		require.Equal(e, []string{a.id}, e.sandboxes(&runtimeapi.PodSandboxFilter{LabelSelector: uidLabel(a)}))
		ready := &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY}
		live := e.sandboxes(&runtimeapi.PodSandboxFilter{State: ready})
		require.Contains(e, live, a.id)
		require.NotContains(e, live, b.id)
		require.Empty(e, e.sandboxes(&runtimeapi.PodSandboxFilter{Id: unknownID}))
		require.Empty(e, e.sandboxes(&runtimeapi.PodSandboxFilter{State: ready, LabelSelector: uidLabel(b)}))
	}},
	{"list/containers by ID, sandbox, label and state", func(e *env) {
		a, running := e.start(waits)
		b := e.run(waits)
		created := e.create(b, waits, 0)
		require.Subset(e, e.containers(nil), []string{running, created})
		require.Equal(e, []string{running}, e.containers(&runtimeapi.ContainerFilter{Id: running}))
		require.Equal(e, []string{created}, e.containers(&runtimeapi.ContainerFilter{PodSandboxId: b.id}))
		require.Equal(e, []string{running}, e.containers(&runtimeapi.ContainerFilter{LabelSelector: uidLabel(a)}))
		state := &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}
		live := e.containers(&runtimeapi.ContainerFilter{State: state})
		require.Contains(e, live, running)
		require.NotContains(e, live, created)
		require.Empty(e, e.containers(&runtimeapi.ContainerFilter{PodSandboxId: b.id, State: state}))
		require.Empty(e, e.containers(&runtimeapi.ContainerFilter{Id: running, PodSandboxId: b.id}))
	}},
	{"list/item says what the status says", func(e *env) {
		p, id := e.start(waits)
		items, err := e.Client.ListContainers(e.ctx, &runtimeapi.ContainerFilter{Id: id})
		require.NoError(e, err)
		require.Len(e, items, 1)
		s := e.status(id)
		require.Equal(e, p.id, items[0].GetPodSandboxId())
		require.Equal(e, s.GetState(), items[0].GetState())
		require.Equal(e, s.GetCreatedAt(), items[0].GetCreatedAt())
		require.Equal(e, s.GetLabels(), items[0].GetLabels())
		require.Equal(e, s.GetAnnotations(), items[0].GetAnnotations())
	}},
	{"list/stats name their containers", func(e *env) {
		p, id := e.start(waits)
		stats, err := e.Client.ListContainerStats(e.ctx, &runtimeapi.ContainerStatsFilter{PodSandboxId: p.id})
		require.NoError(e, err)
		require.Len(e, stats, 1)
		require.Equal(e, id, stats[0].GetAttributes().GetId())
		require.Equal(e, e.status(id).GetLabels(), stats[0].GetAttributes().GetLabels())
		require.Equal(e, e.status(id).GetMetadata().GetName(), stats[0].GetAttributes().GetMetadata().GetName())
		require.NotNil(e, stats[0].GetMemory().GetWorkingSetBytes())
		all, err := e.Client.ListContainerStats(e.ctx, nil)
		require.NoError(e, err)
		require.NotEmpty(e, all)
	}},
	{"runtime/version and conditions", func(e *env) {
		v, err := e.Client.Version(e.ctx)
		require.NoError(e, err)
		require.Equal(e, "0.1.0", v.GetVersion())
		require.Equal(e, "v1", v.GetRuntimeApiVersion())
		s, err := e.Client.Status(e.ctx)
		require.NoError(e, err)
		conditions := map[string]bool{}
		for _, c := range s.GetStatus().GetConditions() {
			conditions[c.GetType()] = c.GetStatus()
		}
		require.True(e, conditions[runtimeapi.RuntimeReady])
		require.Contains(e, conditions, runtimeapi.NetworkReady)
	}},
	{"runtime/cgroup driver, or the fact that it cannot say", func(e *env) {
		config, err := e.Client.RuntimeConfig(e.ctx)
		if !e.RuntimeConfig {
			require.ErrorIs(e, err, cri.ErrUnsupported)
			return
		}
		require.NoError(e, err)
		require.NotNil(e, config.GetLinux())
	}},
}

func uidLabel(p *pod) map[string]string {
	return map[string]string{labelPodUID: p.config.GetMetadata().GetUid()}
}

func (e *env) sandboxes(f *runtimeapi.PodSandboxFilter) []string {
	e.Helper()
	list, err := e.Client.ListPodSandbox(e.ctx, f)
	require.NoError(e, err)
	var ids []string
	for _, s := range list {
		ids = append(ids, s.GetId())
	}
	return ids
}

func (e *env) containers(f *runtimeapi.ContainerFilter) []string {
	e.Helper()
	list, err := e.Client.ListContainers(e.ctx, f)
	require.NoError(e, err)
	var ids []string
	for _, c := range list {
		ids = append(ids, c.GetId())
	}
	return ids
}
