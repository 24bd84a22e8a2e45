package admit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/qos"

	"github.com/flowlet/flowlet/internal/pod"
)

// Resizable reports whether a pod can be given what its spec asks for now. If
// not, reason is PodReasonDeferred, when other pods are in the way, or
// PodReasonInfeasible. It changes nothing.
func (l *Ledger) Resizable(s *pod.State) (ok bool, reason, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resizable(s)
}

// Resize gives a pod what its spec asks for and reserves the room in the same
// moment. The fact is pod.Resized, and there is none when it does not fit.
func (l *Ledger) Resize(_ context.Context, s *pod.State) (pod.Facts, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ok, reason, message := l.resizable(s); !ok {
		return nil, fmt.Errorf("%s: %s", reason, message)
	}
	e := newEntry(s)
	e.request = requestOf(pod.RoomOf(s.Spec.Asked))
	l.enter(e)
	return pod.Facts{pod.Resized{Asked: s.Spec.Asked, At: time.Now()}}, nil
}

func (l *Ledger) resizable(s *pod.State) (ok bool, reason, message string) {
	asked := s.Spec.Asked
	if asked == nil {
		return true, "", ""
	}
	if is, was := qos.GetPodQOS(asked), qos.GetPodQOS(s.Pod()); is != was {
		return false, v1.PodReasonInfeasible, fmt.Sprintf("Pod QOS Class may not change as a result of resizing: it is %s and would be %s", was, is)
	}
	if l.node.Swaps != nil && l.node.swapsDiffer(s.Pod(), asked) {
		return false, v1.PodReasonInfeasible, "In-place resize of containers with swap is not supported."
	}
	want := requestOf(pod.RoomOf(asked))
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if have, known := l.node.allocatable[name]; known && want[name] > have {
			return false, v1.PodReasonInfeasible, fmt.Sprintf("Node didn't have enough capacity: %s, requested: %d, capacity: %d", name, want[name], have)
		}
	}
	used := l.used
	if have, ok := l.entries[s.UID()]; ok {
		used = used.minus(have.request)
	}
	if no := l.node.lacks(used, want); no != nil {
		return false, v1.PodReasonDeferred, no.message
	}
	return true, "", ""
}

// swapsDiffer reports whether the memory that a container requests changes
// while it runs, and with it the swap that it may use.
func (n *node) swapsDiffer(from, to *v1.Pod) bool {
	for _, lists := range [2][2][]v1.Container{{from.Spec.InitContainers, to.Spec.InitContainers}, {from.Spec.Containers, to.Spec.Containers}} {
		for i := range lists[0] {
			was := &lists[0][i]
			j := slices.IndexFunc(lists[1], func(c v1.Container) bool { return c.Name == was.Name })
			if j < 0 || restartsForMemory(was) {
				continue
			}
			is := &lists[1][j]
			if was.Resources.Requests.Memory().Cmp(*is.Resources.Requests.Memory()) != 0 && (n.Swaps(from, was) || n.Swaps(to, is)) {
				return true
			}
		}
	}
	return false
}

func restartsForMemory(c *v1.Container) bool {
	return slices.ContainsFunc(c.ResizePolicy, func(p v1.ContainerResizePolicy) bool {
		return p.ResourceName == v1.ResourceMemory && p.RestartPolicy == v1.RestartContainer
	})
}
