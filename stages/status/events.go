package status

import (
	"cmp"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/pod"
)

// keptEvents is how many different events are kept per pod.
const keptEvents = 50

// Events keeps the newest events of every pod in memory. Repetitions of an
// event only raise its count. The zero value is ready to use; methods may be
// called concurrently and never block for long.
type Events struct {
	mu   sync.Mutex
	pods map[types.UID][]pod.Event // by Last, oldest first; elements are replaced, never changed
}

var _ pod.Recorder = (*Events)(nil)

// Event implements pod.Recorder.
func (e *Events) Event(p *v1.Pod, fieldPath, eventType, reason, message string) {
	if p == nil {
		return
	}
	now := time.Now()
	ev := pod.Event{
		Type: eventType, Reason: reason, Message: message, FieldPath: fieldPath,
		First: now, Last: now, Count: 1,
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	kept := e.pods[p.UID]
	if i := slices.IndexFunc(kept, func(k pod.Event) bool { return same(k, ev) }); i >= 0 {
		ev.First, ev.Count = kept[i].First, kept[i].Count+1
		kept = slices.Delete(kept, i, i+1)
	} else if len(kept) == keptEvents {
		kept = slices.Delete(kept, 0, 1)
	}
	if e.pods == nil {
		e.pods = make(map[types.UID][]pod.Event)
	}
	e.pods[p.UID] = append(kept, ev)
}

func same(a, b pod.Event) bool {
	return a.Reason == b.Reason && a.Message == b.Message && a.FieldPath == b.FieldPath && a.Type == b.Type
}

// Of returns the events of a pod, by their first appearance.
func (e *Events) Of(uid types.UID) []pod.Event {
	e.mu.Lock()
	out := slices.Clone(e.pods[uid])
	e.mu.Unlock()
	slices.SortStableFunc(out, func(a, b pod.Event) int {
		return cmp.Or(a.First.Compare(b.First), a.Last.Compare(b.Last))
	})
	return out
}

// Forget drops the events of a pod that nothing is left of.
func (e *Events) Forget(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.pods, uid)
}
