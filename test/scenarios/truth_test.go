package scenarios_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// truth collects breaches of the invariants:
//
//	I1 never two live containers for one (pod full name, container name)
//	I2 no RunPodSandbox, CreateContainer or StartContainer for a pod after its
//	   removal was seen; at the very instant of that it may have been under way
//	I3 a phase never leaves Succeeded or Failed, and those are told only when
//	   nothing of the pod runs
type truth struct {
	mu       sync.Mutex
	breaches []string
	over     map[string]v1.PodPhase // terminal phases, by UID and life
	newest   map[string]string      // ID of the container started last, by full name
	looked   time.Time
	began    time.Time
}

func (t *truth) breach(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.breaches = append(t.breaches, fmt.Sprint(time.Since(t.began), " ", fmt.Sprintf(format, args...)))
}

func (n *node) verdict() {
	n.Helper()
	t := &n.truth
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.breaches[:min(len(t.breaches), 5)] {
		n.Error("invariant: " + b)
	}
	if len(t.breaches) > 0 {
		n.dump()
	}
}

// before sees every call before it is sent.
func (n *node) before(l *line, method string, args any) {
	uid := ""
	switch r := args.(type) {
	case *runtimeapi.RunPodSandboxRequest:
		uid = r.GetConfig().GetMetadata().GetUid()
	case *runtimeapi.CreateContainerRequest:
		uid = r.GetSandboxConfig().GetMetadata().GetUid()
	case *runtimeapi.StartContainerRequest:
		c, _ := n.sim.Container(r.GetContainerId())
		uid = c.Pod.GetUid()
	case *runtimeapi.ExecSyncRequest:
		n.executed(r)
		return
	default:
		return
	}
	if a := n.agent; a != nil && a.line == l {
		if v, ok := a.Store.Get(pod.Key(uid)); ok && removedBefore(v.State, time.Now()) {
			n.truth.breach("I2: %s for pod %s after its removal was seen", method, v.State.FullName())
		}
	}
}

// removedBefore reports whether the pod's removal was seen before now. The agent
// asks for it last thing before it sends a call, and what is folded between its
// question and this one is of the same instant: time stands still until all wait.
func removedBefore(s *pod.State, now time.Time) bool {
	return s.Removal != nil && s.Removal.At.Before(now)
}

// after sees every call when the runtime is done with it.
func (n *node) after(args any) {
	r, ok := args.(*runtimeapi.StartContainerRequest)
	if !ok {
		return
	}
	now, ok := n.sim.Container(r.GetContainerId())
	if !ok || !isRunning(now) {
		return
	}
	t := &n.truth
	t.mu.Lock()
	was := t.newest[fullName(now)]
	if t.newest == nil {
		t.newest = map[string]string{}
	}
	t.newest[fullName(now)] = r.GetContainerId()
	t.mu.Unlock()
	if old, ok := n.sim.Container(was); ok && was != r.GetContainerId() && isRunning(old) {
		t.breach("I1: %s started while another one runs", fullName(now))
	}
}

func isRunning(c crisim.Container) bool {
	return c.Status.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING
}

func fullName(c crisim.Container) string {
	return c.Pod.GetName() + "_" + c.Pod.GetNamespace() + "/" + c.Status.GetMetadata().GetName()
}

func (n *node) lookAtContainers() map[string]bool {
	live := map[string]string{}
	uids := map[string]bool{}
	for _, c := range n.sim.Containers() {
		if !isRunning(c) {
			continue
		}
		uids[c.Pod.GetUid()] = true
		name := fullName(c)
		if other, ok := live[name]; ok {
			n.truth.breach("I1: two containers %s live: %.8s and %.8s", name, other, c.Status.GetId())
		}
		live[name] = c.Status.GetId()
	}
	return uids
}

// look checks what can be seen from outside at any moment. Often enough is
// every 50 ms: a breach lasts.
func (n *node) look() {
	if time.Since(n.truth.looked) < 50*time.Millisecond {
		return
	}
	n.truth.looked = time.Now()
	live := n.lookAtContainers()
	if n.agent == nil {
		return
	}
	for _, v := range n.agent.Store.All() {
		if v.Status == nil {
			continue
		}
		life := fmt.Sprint(v.Key, v.State.Incarnation)
		ended := v.Status.Phase == v1.PodSucceeded || v.Status.Phase == v1.PodFailed
		if was, ok := n.truth.over[life]; ok && was != v.Status.Phase {
			n.truth.breach("I3: pod %s went from %s to %s", v.State.FullName(), was, v.Status.Phase)
		}
		if !ended {
			continue
		}
		if live[string(v.Key)] {
			n.truth.breach("I3: pod %s is %s while a container of it runs", v.State.FullName(), v.Status.Phase)
		}
		if n.truth.over == nil {
			n.truth.over = map[string]v1.PodPhase{}
		}
		n.truth.over[life] = v.Status.Phase
	}
}

// moves counts the runs of stages.
type moves struct {
	mu   sync.Mutex
	runs map[string]int // by pod key and stage
}

var _ dag.Observer[pod.Key] = (*moves)(nil)

// Moved implements dag.Observer.
func (m *moves) Moved(k pod.Key, id dag.ID, _, to dag.Entry) {
	if to.State != dag.Running {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.runs == nil {
		m.runs = map[string]int{}
	}
	m.runs[string(k)+" "+id.String()]++
}

// Context implements dag.Observer.
func (*moves) Context(ctx context.Context, _ pod.Key, _ dag.ID) context.Context { return ctx }

// total is the number of runs so far.
func (m *moves) total() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := 0
	for v := range maps.Values(m.runs) {
		sum += v
	}
	return sum
}

func (m *moves) list() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.runs))
}
