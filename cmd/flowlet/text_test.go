package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/server"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// same compares a text with the golden one; blanks at the ends of lines do not count.
func same(t *testing.T, want, got string) {
	t.Helper()
	lines := strings.Split(got, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), strings.Join(lines, "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func shown(name string, edit func(p *v1.Pod)) v1.Pod {
	at := metav1.NewTime(now.Add(-90 * time.Second))
	p := v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: "u-1", Annotations: map[string]string{server.AnnotationPhase: "running"}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "a"}}},
		Status: v1.PodStatus{
			Phase: v1.PodRunning, PodIP: "10.0.0.1", StartTime: &at,
			ContainerStatuses: []v1.ContainerStatus{{Name: "a", Image: "x:1", Ready: true, RestartCount: 2, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}},
		},
	}
	edit(&p)
	return p
}

func waiting(reason string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Status.ContainerStatuses[0].Ready = false
		p.Status.ContainerStatuses[0].State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}
	}
}

func TestPodTable(t *testing.T) {
	always, started := v1.ContainerRestartPolicyAlways, true
	list := v1.PodList{Items: []v1.Pod{
		shown("runs", func(*v1.Pod) {}),
		shown("loops", waiting("CrashLoopBackOff")),
		shown("creates", func(p *v1.Pod) { waiting("ContainerCreating")(p); p.Status.Phase = v1.PodPending }),
		shown("done", func(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded; p.Status.ContainerStatuses[0].Ready = false }),
		shown("rejected", func(p *v1.Pod) {
			p.Status = v1.PodStatus{Phase: v1.PodFailed, Reason: "OutOfpods"}
		}),
		shown("ends", func(p *v1.Pod) { at := metav1.NewTime(now); p.DeletionTimestamp = &at }),
		shown("sidecar", func(p *v1.Pod) {
			p.Spec.InitContainers = []v1.Container{{Name: "s", RestartPolicy: &always}, {Name: "i"}}
			p.Status.InitContainerStatuses = []v1.ContainerStatus{
				{Name: "s", Ready: true, Started: &started, RestartCount: 1, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
				{Name: "i", Ready: true, State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}},
			}
		}),
		shown("inits", func(p *v1.Pod) {
			p.Status.InitContainerStatuses = []v1.ContainerStatus{
				{Name: "i", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}},
				{Name: "j", Started: &started, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}},
			}
			waiting("PodInitializing")(p)
		}),
		shown("initfails", func(p *v1.Pod) {
			p.Status.InitContainerStatuses = []v1.ContainerStatus{{Name: "i", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
			waiting("PodInitializing")(p)
		}),
		shown("found", func(p *v1.Pod) {
			p.Spec, p.Status = v1.PodSpec{}, v1.PodStatus{}
			p.Annotations[server.AnnotationLeftAlone] = "source api is not configured here"
		}),
	}}
	same(t, `
NAMESPACE  NAME       READY  STATUS                 RESTARTS  AGE     IP
default    runs       1/1    Running                2         90s     10.0.0.1
default    loops      0/1    CrashLoopBackOff       2         90s     10.0.0.1
default    creates    0/1    ContainerCreating      2         90s     10.0.0.1
default    done       0/1    Completed              2         90s     10.0.0.1
default    rejected   0/1    OutOfpods              0         <none>  <none>
default    ends       1/1    Terminating            2         90s     10.0.0.1
default    sidecar    2/2    Running                3         90s     10.0.0.1
default    inits      0/1    Init:1/2               2         90s     10.0.0.1
default    initfails  0/1    Init:ImagePullBackOff  2         90s     10.0.0.1
default    found      0/0    LeftAlone              0         <none>  <none>
`, podTable(now, list))
	same(t, "No pods.\n", podTable(now, v1.PodList{}))
}

func TestNotes(t *testing.T) {
	list := v1.PodList{Items: []v1.Pod{
		shown("fine", func(*v1.Pod) {}),
		shown("odd", func(p *v1.Pod) { p.Annotations[server.AnnotationUnsupported] = "spec.hostUsers" }),
		shown("found", func(p *v1.Pod) {
			p.Annotations[server.AnnotationLeftAlone] = "source api is not configured here"
		}),
	}}
	for _, name := range []string{"f1", "f2", "f3", "f4", "f5"} {
		p := list.Items[2].DeepCopy()
		p.Name = name
		list.Items = append(list.Items, *p)
	}
	files := []server.File{
		{Path: "/m/a.yaml", Pod: "default/a", Warnings: []string{"/m/a.yaml:3: spec.foo: unknown field"}},
		{Path: "/m/b.yaml", Pod: "default/b", Error: "/m/b.yaml:3: not valid YAML\n", Keeps: true},
		{Path: "/m/c.yaml", Error: "/m/c.yaml: file is empty"},
		{Path: "/m/d.bak", Ignored: "its name does not end in .yaml"},
		{Path: "/m/e.yaml", Pod: "default/e"},
	}
	same(t, `

Warning: this build does not act on spec.hostUsers of default/odd
Left alone: default/found, default/f1, default/f2, default/f3 and 2 more pods: source api is not configured here
Warning: /m/a.yaml:3: spec.foo: unknown field
Error: /m/b.yaml:3: not valid YAML (pod default/b goes on as it was)
Error: /m/c.yaml: file is empty
Ignored: /m/d.bak: its name does not end in .yaml
`, notes(list, files))
	same(t, "", notes(v1.PodList{}, files[4:]))
}

func TestDescribe(t *testing.T) {
	p := shown("web-n", func(p *v1.Pod) {
		waiting("CrashLoopBackOff")(p)
		p.Annotations[pod.AnnotationSource] = "file"
		p.Annotations[server.AnnotationManifest] = "/m/web.yaml"
		p.Annotations[server.AnnotationUnsupported] = "spec.hostUsers"
		p.Status.Message = "a message"
		p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &v1.ContainerStateTerminated{Reason: "Error", ExitCode: 3}
		p.Spec.InitContainers = []v1.Container{{Name: "i"}}
		p.Status.InitContainerStatuses = []v1.ContainerStatus{{Name: "i", Ready: true, Image: "y", State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}}}
	})
	d := server.Detail{
		Pod: &p,
		Why: explain.Report{Pod: "default/web-n", Phase: "running", At: now, Done: 3, Total: 4, Blocking: []explain.Block{
			{Stage: "container[a]", State: "held", Since: now.Add(-time.Second), Until: now.Add(9 * time.Second), Do: "start attempt 3", Hold: "crash-loop back-off 10s"},
		}},
		Events: []pod.Event{
			{Type: "Normal", Reason: "Started", Message: "Container started", FieldPath: "spec.containers{a}", Count: 3, First: now.Add(-time.Minute), Last: now.Add(-time.Second)},
			{Type: "Warning", Reason: "FieldNotSupported", Message: "no", Count: 1, First: now, Last: now},
		},
	}
	same(t, `
Name:       web-n
Namespace:  default
UID:        u-1
Status:     CrashLoopBackOff
Life:       running
IP:         10.0.0.1
Started:    2026-01-02T03:02:35Z (90s ago)
Source:     file
Manifest:   /m/web.yaml
Message:    a message
No effect:  spec.hostUsers

CONTAINER  KIND  STATE                READY  RESTARTS  LAST STATE      IMAGE
i          init  Terminated (exit 0)  true   0         -               y
a          app   CrashLoopBackOff     false  2         Error (exit 3)  x:1

default/web-n  running  3 of 4 stages done

container[a]  held for 1.00s
  task: start attempt 3
  crash-loop back-off 10s, for at most another 9.00s

AGE               TYPE     REASON             OBJECT              MESSAGE
1s (x3 over 60s)  Normal   Started            spec.containers{a}  Container started
0s                Warning  FieldNotSupported  pod                 no
`, describe(now, d))
}

func TestNodeText(t *testing.T) {
	n := server.Node{
		Name: "n", Version: "v1", Started: now.Add(-time.Hour), Pods: 2, Left: []string{"kube-system/other"},
		Runtime: server.RuntimeHealth{
			Endpoint: "unix:///s", Name: "containerd", Version: "v2.1", Ready: true, NetworkReady: true,
			Events: true, EventsSince: now.Add(-time.Minute), Listed: now.Add(-3 * time.Second),
		},
		Checks: []server.Check{{Name: "ping"}},
	}
	same(t, `
Node:            n
Agent:           flowlet v1, running for 60m
Pods:            2
Runtime:         containerd v2.1 at unix:///s
Runtime ready:   true
Network ready:   true
Runtime events:  on for 60s
Last list:       3s ago

ok      ping

Left alone, their source is not configured here: kube-system/other
`, nodeText(now, n))

	n.Left, n.Runtime = nil, server.RuntimeHealth{
		Endpoint: "unix:///s", Name: "containerd", Message: "connection refused", Since: now.Add(-5 * time.Second),
		EventsSince: now.Add(-5 * time.Second), EventsOff: "connection refused",
	}
	n.Checks = append(n.Checks, server.Check{Name: "runtime-list", Error: "connection refused"})
	same(t, `
Node:            n
Agent:           flowlet v1, running for 60m
Pods:            2
Runtime:         at unix:///s, has not answered yet
Runtime ready:   false
Network ready:   false
Runtime says:    connection refused (for 5s)
Runtime events:  off for 5s: connection refused

ok      ping
FAILED  runtime-list: connection refused
`, nodeText(now, n))
}

func TestPolicyText(t *testing.T) {
	same(t, `
CLASS     SLOTS     ORDER     DEADLINE  BACK-OFF    RUNNING  WAITING  LOST
(others)  16        priority  2m0s      1s to 1m0s  0        0        0
image     no limit  fifo      none      none        1        2        3
`, policyText(server.Policy{Classes: []server.ClassRow{
		{Slots: 16, Order: "priority", Deadline: "2m0s", Backoff: "1s to 1m0s"},
		{Name: "image", Order: "fifo", Running: 1, Waiting: 2, Lost: 3},
	}}))
}
