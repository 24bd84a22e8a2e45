package resize_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/container"
	"github.com/flowlet/flowlet/stages/resize"
)

var (
	_ resize.Runtime    = (*cri.Client)(nil)
	_ resize.Containers = (*container.Containers)(nil)
)

// fake logs what is done, in order, and fails where its map says.
type fake struct {
	log   []string
	fail  map[string]error
	usage uint64
	pod   int64 // memory that the pod uses
}

func (f *fake) do(what string) error {
	f.log = append(f.log, what)
	return f.fail[what]
}

func (f *fake) UpdatePodSandboxResources(_ context.Context, r *runtimeapi.UpdatePodSandboxResourcesRequest) error {
	return f.do(fmt.Sprintf("sandbox %s shares %d", r.GetPodSandboxId(), r.GetResources().GetCpuShares()))
}

func (f *fake) ListContainerStats(_ context.Context, filter *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	if err := f.fail["stats"]; err != nil {
		return nil, err
	}
	return []*runtimeapi.ContainerStats{{
		Attributes: &runtimeapi.ContainerAttributes{Id: filter.GetId()},
		Memory:     &runtimeapi.MemoryUsage{UsageBytes: &runtimeapi.UInt64Value{Value: f.usage}},
	}}, nil
}

func (f *fake) Raise(context.Context, *v1.Pod, *v1.Pod) error { return f.do("raise") }
func (f *fake) Ensure(context.Context, *v1.Pod) error         { return f.do("ensure") }

func (f *fake) Memory(_ context.Context, p *v1.Pod) (limit, used int64, err error) {
	for i := range p.Spec.Containers {
		limit += p.Spec.Containers[i].Resources.Limits.Memory().Value()
	}
	return limit, f.pod, nil
}

func (f *fake) Update(_ context.Context, _ *pod.State, c *v1.Container, id string) (pod.Facts, error) {
	return nil, f.do("update " + c.Name + " " + id)
}

func sized(pairs ...string) *v1.Pod {
	p := &v1.Pod{}
	for i := 0; i < len(pairs); i += 2 {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: pairs[i], Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")},
			Limits:   v1.ResourceList{v1.ResourceMemory: resource.MustParse(pairs[i+1])},
		}})
	}
	return p
}

// from returns a pod that was resized, with all containers left.
func from(was, is *v1.Pod) *pod.State {
	left := map[string]string{}
	for i := range is.Spec.Containers {
		left[is.Spec.Containers[i].Name] = is.Spec.Containers[i].Name + "1"
	}
	return &pod.State{
		Spec: &pod.Spec{Pod: is}, Allocation: pod.AllocationOf(is),
		Resize: &pod.Resize{At: time.Unix(9, 0), From: *pod.AllocationOf(was), Left: left, Pod: true},
	}
}

func apply(t *testing.T, f *fake, s *pod.State) (pod.Facts, error) {
	t.Helper()
	r := &resize.Resizer{Runtime: f, Cgroups: f, Containers: f}
	return r.Apply(t.Context(), s, "s1")
}

func TestThePodsLimitsAreNeverBelowThoseOfItsContainers(t *testing.T) {
	f := &fake{}
	facts, err := apply(t, f, from(sized("a", "1Gi", "b", "3Gi", "c", "1Gi"), sized("a", "2Gi", "b", "1Gi", "c", "1Gi")))
	require.NoError(t, err)
	require.Equal(t, []string{"sandbox s1 shares 3072", "raise", "update b b1", "update a a1", "update c c1", "ensure"}, f.log,
		"what gives back goes first")
	at := time.Unix(9, 0)
	require.Equal(t, pod.Facts{
		pod.Actuated{At: at, Name: "b", ID: "b1"},
		pod.Actuated{At: at, Name: "a", ID: "a1"},
		pod.Actuated{At: at, Name: "c", ID: "c1"},
		pod.Actuated{At: at},
	}, facts)
}

func TestMemoryInUseIsNotTaken(t *testing.T) {
	for name, tc := range map[string]struct {
		f   fake
		is  string
		err string
	}{
		"container":          {fake{usage: 2 << 30}, "1Gi", `cannot decrease memory limits: attempting to set container "a" memory limit (1073741824) below current usage (2147483648)`},
		"just as much":       {fake{usage: 1 << 30}, "1Gi", "below current usage"},
		"pod":                {fake{pod: 3 << 30}, "1Gi", "cannot decrease memory limits: attempting to set pod memory limit (1073741824) below current usage (3221225472)"},
		"enough is free":     {fake{usage: 1<<30 - 1}, "1Gi", ""},
		"raised":             {fake{usage: 9 << 30, pod: 9 << 30}, "4Gi", ""},
		"usage not known":    {fake{fail: map[string]error{"stats": errors.New("odd")}}, "1Gi", "odd"},
		"runtime that can't": {fake{fail: map[string]error{"stats": status.Error(codes.Unimplemented, "no")}}, "1Gi", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := apply(t, &tc.f, from(sized("a", "2Gi"), sized("a", tc.is)))
			if tc.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.err)
			require.Empty(t, tc.f.log, "nothing is changed")
		})
	}
}

func TestWhatIsDoneIsToldWhenTheRestFails(t *testing.T) {
	was, is := sized("a", "1Gi", "b", "1Gi"), sized("a", "2Gi", "b", "2Gi")
	f := &fake{fail: map[string]error{"update b b1": errors.New("no")}}
	facts, err := apply(t, f, from(was, is))
	require.ErrorContains(t, err, "no")
	require.Equal(t, pod.Facts{pod.Actuated{At: time.Unix(9, 0), Name: "a", ID: "a1"}}, facts)
	require.NotContains(t, f.log, "ensure")

	f = &fake{fail: map[string]error{"update b b1": status.Error(codes.NotFound, "gone"), "sandbox s1 shares 2048": status.Error(codes.Unimplemented, "old")}}
	facts, err = apply(t, f, from(was, is))
	require.NoError(t, err, "a runtime may lack the call, a container may be gone")
	require.Len(t, facts, 3)

	f = &fake{fail: map[string]error{"sandbox s1 shares 2048": errors.New("refused")}}
	_, err = apply(t, f, from(was, is))
	require.ErrorContains(t, err, "refused")
	require.Len(t, f.log, 1, "the runtime may refuse all of it")
}

func TestContainersThatMustRestartAreLeftAlone(t *testing.T) {
	was, is := sized("a", "1Gi", "b", "1Gi"), sized("a", "2Gi", "b", "2Gi")
	is.Spec.Containers[0].ResizePolicy = []v1.ContainerResizePolicy{{ResourceName: v1.ResourceMemory, RestartPolicy: v1.RestartContainer}}
	f := &fake{}
	_, err := apply(t, f, from(was, is))
	require.NoError(t, err)
	require.Equal(t, []string{"sandbox s1 shares 2048", "raise", "update b b1", "ensure"}, f.log)
}
