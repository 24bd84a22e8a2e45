package status_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/status"
)

func amounts(cpu, memory string) v1.ResourceList {
	out := v1.ResourceList{}
	if cpu != "" {
		out[v1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		out[v1.ResourceMemory] = resource.MustParse(memory)
	}
	return out
}

// tells is a container that runs, of which the runtime tells that.
func tells(name string, t pod.Told) pod.Container {
	c := running(name, 0)
	c.Told = &t
	return c
}

// computed is the status of a pod as of these settings.
func computed(change func(in *status.In), p *v1.Pod, changes ...pod.Change) v1.PodStatus {
	s, _ := pod.Fold(nil, pod.SpecSet{Spec: &pod.Spec{Pod: p, Source: pod.SourceFile, Seen: t0}})
	for _, c := range changes {
		s, _ = pod.Fold(s, c)
	}
	in := status.In{Now: at(100), State: s, Memo: dag.Memo{}, Runtime: "containerd"}
	if change != nil {
		change(&in)
	}
	return status.Compute(in)
}

func onePod(c v1.Container) *v1.Pod {
	c.Name, c.Image = "web", "nginx"
	return &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{c}}}
}

// The rules are those of kubelet v1.37.2: the runtime's amounts in place of the
// allocated ones, but for what is too little for the kernel to tell apart.
func TestResourcesAsTheRuntimeShowsThem(t *testing.T) {
	for name, tc := range map[string]struct {
		asked v1.ResourceRequirements
		told  pod.Told
		want  v1.ResourceRequirements
	}{
		"as asked": {
			v1.ResourceRequirements{Requests: amounts("0.5", "1024Mi"), Limits: amounts("1", "2Gi")},
			pod.Told{CPURequest: 500, CPULimit: 1000, MemoryLimit: 2 << 30},
			v1.ResourceRequirements{Requests: amounts("0.5", "1024Mi"), Limits: amounts("1", "2Gi")},
		},
		"not carried out yet": {
			v1.ResourceRequirements{Requests: amounts("2", "1Gi"), Limits: amounts("4", "4Gi")},
			pod.Told{CPURequest: 500, CPULimit: 1000, MemoryLimit: 2 << 30},
			v1.ResourceRequirements{Requests: amounts("500m", "1Gi"), Limits: amounts("1", "2Gi")},
		},
		"too little to tell apart": {
			v1.ResourceRequirements{Requests: amounts("1m", ""), Limits: amounts("5m", "")},
			pod.Told{CPURequest: 2, CPULimit: 10},
			v1.ResourceRequirements{Requests: amounts("1m", ""), Limits: amounts("5m", "")},
		},
		"nothing was asked for": {v1.ResourceRequirements{}, pod.Told{CPURequest: 2, MemoryLimit: 5}, v1.ResourceRequirements{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := onePod(v1.Container{Resources: tc.asked})
			asked := tc.asked.DeepCopy()
			st := computed(nil, p, admitted, ready, seen(tells("web", tc.told))).ContainerStatuses[0]
			require.Empty(t, cmp.Diff(&tc.want, st.Resources))
			require.Empty(t, cmp.Diff(tc.asked.Requests, st.AllocatedResources))
			require.Empty(t, cmp.Diff(*asked, p.Spec.Containers[0].Resources), "the spec is left alone")
		})
	}
	p := onePod(v1.Container{Resources: v1.ResourceRequirements{Limits: amounts("", "1Gi")}})
	over := tells("web", pod.Told{MemoryLimit: 5})
	over.State, over.Exit = pod.Exited, pod.Exit{FinishedAt: at(10)}
	st := computed(nil, p, admitted, ready, seen(over)).ContainerStatuses[0]
	require.Equal(t, "1Gi", st.Resources.Limits.Memory().String(), "of what does not run, what was allocated")
	require.Nil(t, computed(nil, p, admitted).ContainerStatuses[0].Resources, "nothing was made")
}

func TestResourcesOfThePod(t *testing.T) {
	p := onePod(v1.Container{Resources: v1.ResourceRequirements{Requests: amounts("1", "1Gi"), Limits: amounts("", "2Gi")}})
	st := computed(nil, p, admitted, ready)
	require.Empty(t, cmp.Diff(amounts("1", "1Gi"), st.AllocatedResources))
	require.Empty(t, cmp.Diff(&v1.ResourceRequirements{Requests: amounts("1", "1Gi"), Limits: amounts("", "2Gi")}, st.Resources))
	p.Spec.Resources = &v1.ResourceRequirements{Requests: amounts("3", "3Gi"), Limits: amounts("4", "4Gi")}
	st = computed(nil, p, admitted, ready)
	require.Empty(t, cmp.Diff(amounts("3", "3Gi"), st.AllocatedResources))
	require.Empty(t, cmp.Diff(amounts("4", "4Gi"), st.Resources.Limits))
}

func TestWhatElseTheRuntimeTells(t *testing.T) {
	told := pod.Told{User: &v1.LinuxContainerUser{UID: 1000, GID: 2000, SupplementalGroups: []int64{2000, 3000}}, StopSignal: v1.SIGUSR1}
	p := onePod(v1.Container{})
	st := computed(nil, p, admitted, ready, seen(tells("web", told))).ContainerStatuses[0]
	require.Equal(t, told.User, st.User.Linux)
	require.Nil(t, st.StopSignal, "needs its gate")
	on := func(in *status.In) { in.StopSignals = true }
	st = computed(on, p, admitted, ready, seen(tells("web", told))).ContainerStatuses[0]
	require.Equal(t, v1.SIGUSR1, *st.StopSignal)
	st = computed(on, p, admitted, ready, seen(running("web", 0))).ContainerStatuses[0]
	require.Nil(t, st.StopSignal, "the runtime does not tell")
	require.Nil(t, st.User)
}

func TestVolumeMountsAreTold(t *testing.T) {
	enabled, maybe, disabled := v1.RecursiveReadOnlyEnabled, v1.RecursiveReadOnlyIfPossible, v1.RecursiveReadOnlyDisabled
	p := onePod(v1.Container{VolumeMounts: []v1.VolumeMount{
		{Name: "a", MountPath: "/a"},
		{Name: "b", MountPath: "/b", ReadOnly: true},
		{Name: "c", MountPath: "/c", ReadOnly: true, RecursiveReadOnly: &maybe},
		{Name: "d", MountPath: "/d", ReadOnly: true, RecursiveReadOnly: &disabled},
	}})
	want := []v1.VolumeMountStatus{
		{Name: "a", MountPath: "/a"},
		{Name: "b", MountPath: "/b", ReadOnly: true, RecursiveReadOnly: &disabled},
		{Name: "c", MountPath: "/c", ReadOnly: true, RecursiveReadOnly: &disabled},
		{Name: "d", MountPath: "/d", ReadOnly: true, RecursiveReadOnly: &disabled},
	}
	require.Empty(t, cmp.Diff(want, computed(nil, p).ContainerStatuses[0].VolumeMounts))
	want[2].RecursiveReadOnly = &enabled
	can := func(in *status.In) { in.RecursiveReadOnly = true }
	require.Empty(t, cmp.Diff(want, computed(can, p).ContainerStatuses[0].VolumeMounts))
}

func TestConditionsOfAResize(t *testing.T) {
	small := onePod(v1.Container{Resources: v1.ResourceRequirements{Requests: amounts("1", "")}})
	large := onePod(v1.Container{Resources: v1.ResourceRequirements{Requests: amounts("2", "")}})
	asks := pod.SpecSet{Spec: &pod.Spec{Pod: large, Source: pod.SourceFile, Seen: t0}}
	memo := func(e dag.Entry) func(in *status.In) {
		return func(in *status.In) { in.Memo = dag.Memo{{Kind: "resize"}: e} }
	}
	find := func(st v1.PodStatus, kind v1.PodConditionType) *v1.PodCondition {
		for i := range st.Conditions {
			if st.Conditions[i].Type == kind {
				return &st.Conditions[i]
			}
		}
		return nil
	}
	changes := []pod.Change{admitted, ready, seen(running("web", 0))}
	st := computed(nil, small, changes...)
	require.Nil(t, find(st, v1.PodResizePending))
	require.Nil(t, find(st, v1.PodResizeInProgress))

	changes = append(changes, asks)
	st = computed(memo(dag.Entry{State: dag.Held, Why: "Deferred: Node didn't have enough resource: cpu"}), small, changes...)
	c := find(st, v1.PodResizePending)
	require.Equal(t, ptr.To(v1.ConditionTrue), &c.Status)
	require.Equal(t, "Deferred", c.Reason)
	require.Equal(t, "Node didn't have enough resource: cpu", c.Message)
	require.Equal(t, "1", st.ContainerStatuses[0].AllocatedResources.Cpu().String())

	changes = append(changes, pod.Resized{Asked: large, At: at(50)})
	st = computed(nil, small, changes...)
	require.Nil(t, find(st, v1.PodResizePending))
	require.Empty(t, find(st, v1.PodResizeInProgress).Reason)
	require.Equal(t, "2", st.ContainerStatuses[0].AllocatedResources.Cpu().String())
	st = computed(memo(dag.Entry{State: dag.Failed, Err: errors.New("no")}), small, changes...)
	require.Equal(t, "Error", find(st, v1.PodResizeInProgress).Reason)
	require.Equal(t, "no", find(st, v1.PodResizeInProgress).Message)

	changes = append(changes, pod.Actuated{At: at(50), Name: "web", ID: "web0"}, pod.Actuated{At: at(50)})
	require.Nil(t, find(computed(nil, small, changes...), v1.PodResizeInProgress))
}
