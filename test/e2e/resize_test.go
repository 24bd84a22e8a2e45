//go:build e2e

package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/stages/cgroup"
)

// A static pod that keeps its UID is resized where it runs; the kernel has the new values, and the status tells them.
func TestResizeInPlace(t *testing.T) {
	sawOn(t, node, "resize in place: cgroups of pod and container, status")
	spec := func(resources string) string {
		return strings.Replace(podOf("resized", "containers: [{name: main, image: IMAGE, resources: "+resources+", args: [log, -every, 1h, up]}]"),
			"metadata:", "metadata:\n  uid: 0f1e2d3c-resized", 1)
	}
	a := newAgent(t, node)
	a.write("resized.yaml", spec("{requests: {cpu: 100m, memory: 32Mi}, limits: {cpu: 500m, memory: 64Mi}}"))
	began := time.Now()
	a.start()
	before := a.untilPod("resized", "is ready", isReady)
	tree, err := cgroup.Detect()
	require.NoError(t, err)
	of := filepath.Join(a.node.CgroupRoot, "kubepods/burstable", "pod"+string(before.UID))
	container := filepath.Join(of, strings.TrimPrefix(status(before, "main").ContainerID, "containerd://"))
	require.Equal(t, limits{102, 50000, 64 << 20}, limitsOf(t, tree, container))

	for resources, want := range map[string]limits{
		"{requests: {cpu: 200m, memory: 32Mi}, limits: {cpu: 750m, memory: 128Mi}}": {204, 75000, 128 << 20},
		"{requests: {cpu: 100m, memory: 32Mi}, limits: {cpu: 250m, memory: 48Mi}}":  {102, 25000, 48 << 20},
	} {
		t.Logf("%s: resize to %s", time.Since(began), resources)
		a.write("resized.yaml", spec(resources))
		p := a.untilPod("resized", "is resized to "+resources, func(p *v1.Pod) bool {
			st := status(p, "main")
			return st.Resources != nil && st.Resources.Limits.Memory().Value() == want.memory && condition(p, v1.PodResizeInProgress) == nil
		})
		require.Equal(t, status(before, "main").ContainerID, status(p, "main").ContainerID, "the container runs on")
		require.Equal(t, want, limitsOf(t, tree, container), "container")
		require.Equal(t, want, limitsOf(t, tree, of), "pod")
		require.Equal(t, want.quota/100, status(p, "main").Resources.Limits.Cpu().MilliValue())
	}

	a.write("resized.yaml", spec("{requests: {cpu: 4000, memory: 32Mi}, limits: {cpu: 4000, memory: 48Mi}}"))
	a.untilPod("resized", "cannot be resized to that", func(p *v1.Pod) bool {
		c := condition(p, v1.PodResizePending)
		return c != nil && c.Reason == v1.PodReasonInfeasible
	})
	t.Logf("%s: done", time.Since(began))
}

func condition(p *v1.Pod, kind v1.PodConditionType) *v1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == kind {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// A pod with users of its own runs as others on the node, and what it mounts is its own all the same.
func TestUserNamespace(t *testing.T) {
	sawOn(t, node, "users and stop signal in the status")
	a := newAgent(t, node)
	a.config["featureGates"] = map[string]bool{"ContainerStopSignals": true}
	a.write("own.yaml", podOf("own", `hostUsers: false
terminationGracePeriodSeconds: 2
os: {name: linux}
volumes: [{name: data, emptyDir: {}}]
containers:
- {name: main, image: IMAGE, args: [log, -every, 1h, up], volumeMounts: [{name: data, mountPath: /data}], lifecycle: {stopSignal: SIGUSR1}}`))
	a.start()
	p := a.untilPod("own", "is ready", isReady)

	var info struct{ Info struct{ PID int } }
	require.NoError(t, a.crictlJSON(&info, "inspect", strings.TrimPrefix(status(p, "main").ContainerID, "containerd://")))
	text, err := os.ReadFile(filepath.Join("/proc", jsonNumber(info.Info.PID), "uid_map"))
	require.NoError(t, err)
	require.Equal(t, []string{"0", "65536", "65536"}, strings.Fields(string(text)))
	file, err := os.ReadFile(filepath.Join(a.root, "pods", string(p.UID), "userns"))
	require.NoError(t, err)
	require.JSONEq(t, `{"uidMappings":[{"hostId":65536,"containerId":0,"length":65536}],"gidMappings":[{"hostId":65536,"containerId":0,"length":65536}]}`, string(file))

	st := status(p, "main")
	require.NotNil(t, st.User)
	require.NotNil(t, st.User.Linux)
	require.Zero(t, st.User.Linux.UID)
	require.NotNil(t, st.StopSignal)
	require.Equal(t, v1.SIGUSR1, *st.StopSignal)
	require.Len(t, st.VolumeMounts, 1)
}

func jsonNumber(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}
