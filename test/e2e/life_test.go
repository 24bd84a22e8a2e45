//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// A worker that fails once makes all containers of its pod start anew, in the sandbox that is there.
func TestRestartOfAllContainers(t *testing.T) {
	sawOn(t, node, "restart of all containers (`RestartAllContainers`)")
	a := startAgent(t, node, "gang.yaml", podOf("gang", `
terminationGracePeriodSeconds: 60
restartPolicy: Never
volumes: [{name: v, emptyDir: {}}]
initContainers:
- {name: init, image: IMAGE, args: [exit, "0"]}
containers:
- name: worker
  image: IMAGE
  args: [job, -steps, "600", -fail-first, /v/failed]
  volumeMounts: [{name: v, mountPath: /v}]
  restartPolicy: Never
  restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [1]}}]
- {name: other, image: IMAGE, args: [sleep, -ignore-term]}
`))
	p := a.untilPod("gang", "has started anew", func(p *v1.Pod) bool {
		st := status(p, "other")
		return isReady(p) && st != nil && st.RestartCount == 1
	})
	for _, name := range []string{"init", "worker", "other"} {
		st := status(p, name)
		require.EqualValues(t, 1, st.RestartCount, name)
		require.NotNil(t, st.LastTerminationState.Terminated, name)
		require.Equal(t, "RestartingAllContainers", st.LastTerminationState.Terminated.Reason)
		require.Len(t, containersOf(a.containers(), string(p.UID), name), 1, "those before are removed")
	}
	require.Len(t, a.sandboxes(), 1)
}

func TestActiveDeadline(t *testing.T) {
	sawOn(t, node, "`activeDeadlineSeconds`")
	a := startAgent(t, node, "late.yaml", podOf("late", `
activeDeadlineSeconds: 4
containers: [{name: main, image: IMAGE, args: [sleep]}]
`))
	p := a.untilPod("late", "has failed", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodFailed })
	require.Equal(t, "DeadlineExceeded", p.Status.Reason)
	ended := status(p, "main").State.Terminated
	require.NotNil(t, ended)
	ran := ended.FinishedAt.Sub(p.Status.StartTime.Time)
	require.InDelta(t, 4, ran.Seconds(), 2.5)
	a.kill()
	a.start()
	time.Sleep(3 * time.Second)
	p = a.untilPod("late", "is known again", func(*v1.Pod) bool { return true })
	require.Equal(t, "DeadlineExceeded", p.Status.Reason, "also to the next agent")
	require.Len(t, containersOf(a.containers(), string(p.UID), "main"), 1)
}

// An image is mounted as a volume, by a container that is made from another one.
func TestImageVolume(t *testing.T) {
	sawOn(t, node, "image volumes, with `subPath`")
	a := startAgent(t, node, "model.yaml", podOf("model", `
restartPolicy: Never
volumes: [{name: model, image: {reference: IMAGE, pullPolicy: IfNotPresent}}]
containers:
- {name: main, image: IMAGE, args: [ls, /model], volumeMounts: [{name: model, mountPath: /model}]}
`))
	p := a.untilPod("model", "has ended", func(p *v1.Pod) bool { return hasSucceeded(p) || p.Status.Phase == v1.PodFailed })
	require.True(t, hasSucceeded(p), outline(p))
	require.NotEmpty(t, a.output(p, "main"), "what is in the image")
}
