package container_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

func TestUpdateSendsTheWholeBlock(t *testing.T) {
	r := newRig(nil)
	st := start(func(_ *v1.Pod, app *v1.Container) {
		app.Resources.Limits = v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}
		app.Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("1Gi")}
	})
	made := request(t, r, st).GetLinux().GetResources()
	st.State.Containers = []pod.Container{{ID: "c1", Name: "app", SandboxID: "s1"}}
	r.rt.calls = nil
	r.rt.status.Resources = &runtimeapi.ContainerResources{Linux: &runtimeapi.LinuxContainerResources{CpuShares: 2048}}
	facts, err := r.Update(t.Context(), st.State, st.Container, "c1")
	require.NoError(t, err)
	require.Equal(t, []string{"update c1", "status c1"}, r.rt.calls)
	require.Equal(t, made, r.rt.updated, "what it would be made with")
	got := facts[0].(pod.Observed).Containers[0]
	require.Equal(t, "s1", got.SandboxID)
	require.Equal(t, int64(2000), got.Told.CPURequest)

	r.rt.fail["status"] = errors.New("away")
	_, err = r.Update(t.Context(), st.State, st.Container, "c1")
	require.NoError(t, err)
	r.rt.fail["update"] = errors.New("no")
	_, err = r.Update(t.Context(), st.State, st.Container, "c1")
	require.EqualError(t, err, "changing the resources of container app: no")
}
