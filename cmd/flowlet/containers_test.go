package main

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestContainersText(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	end := func(reason string, code int32, ago time.Duration, said string) v1.ContainerState {
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
			Reason: reason, ExitCode: code, FinishedAt: metav1.NewTime(now.Add(-ago)), Message: said,
		}}
	}
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	p := &v1.Pod{
		Spec: v1.PodSpec{
			InitContainers:      []v1.Container{{Name: "i"}, {Name: "s", RestartPolicy: &always}},
			Containers:          []v1.Container{{Name: "a"}, {Name: "b"}},
			EphemeralContainers: []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "e"}}},
		},
		Status: v1.PodStatus{
			InitContainerStatuses: []v1.ContainerStatus{
				{Name: "i", Ready: true, Image: "x", State: end("Completed", 0, time.Minute*3, "")},
				{Name: "s", Ready: true, Image: "x", State: running},
			},
			ContainerStatuses: []v1.ContainerStatus{
				{
					Name: "a", Image: "x", RestartCount: 2, LastTerminationState: end("Error", 3, 5*time.Second, "no database\n\x1b[2Jgiving up\n"),
					State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				},
				// its newest end is silent: what an older one said does not explain it
				{Name: "b", Image: "x", RestartCount: 1, State: end("Error", 1, time.Second, ""), LastTerminationState: end("Error", 1, 9*time.Second, "old")},
			},
			EphemeralContainerStatuses: []v1.ContainerStatus{{Name: "e", Image: "x", State: running}},
		},
	}
	same(t, `

CONTAINER  KIND       STATE                       READY  RESTARTS  LAST STATE              IMAGE
i          init       Completed (exit 0, 3m ago)  true   0         -                       x
s          sidecar    Running                     true   0         -                       x
a          app        CrashLoopBackOff            false  2         Error (exit 3, 5s ago)  x
b          app        Error (exit 1, 1s ago)      false  1         Error (exit 1, 9s ago)  x
e          ephemeral  Running                     false  0         -                       x

Last words of a:
  no database
  ?[2Jgiving up
`, containersText(now, p))
	same(t, "", containersText(now, &v1.Pod{}))
}
