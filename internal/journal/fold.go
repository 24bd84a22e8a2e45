package journal

import (
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// justNow is more than passes between a step and the news of it.
const justNow = 100 * time.Millisecond

// Folded tells the journal how the state of a pod changed; old is nil at first
// sight. It opens and closes the episodes that follow from the pod's phase. It
// may be called before or after the step that the new state led to.
func (j *Journal) Folded(k pod.Key, old, now *pod.State) {
	j.mu.Lock()
	h := j.history(k)
	h.pod = Pod{
		UID: string(now.Identity.UID), Namespace: now.Identity.Namespace, Name: now.Identity.Name,
		Source: now.Source(), Incarnation: now.Incarnation,
	}
	was := pod.Pending
	if old != nil {
		was = old.Phase
	}
	var ended *Closed
	switch reborn := old != nil && old.Incarnation != 0 && old.Incarnation != now.Incarnation && was == pod.Deleting; {
	case now.Phase == pod.Forgotten:
		ended = j.end(k, h, "done")
	case reborn:
		ended = j.begin(k, h, opening{kind: Start, at: timeOf(now.Incarnation), before: "done"})
	case now.Spec != nil && (old == nil || old.Spec == nil) && now.Phase <= pod.Active:
		ended = j.begin(k, h, opening{kind: Start, at: timeOf(now.Incarnation)})
	case was != now.Phase:
		ended = j.phase(k, h, now)
	}
	if h.now.kind == Start && foundUp(now) && !h.now.tape.ran() {
		h.now.kind = Adopt
	}
	j.mu.Unlock()
	j.tell(ended)
}

func (j *Journal) phase(k pod.Key, h *history, now *pod.State) *Closed {
	switch now.Phase {
	case pod.Finishing:
		o := opening{kind: Finish, before: "completed"}
		if !now.Admission.OK {
			o.before = "rejected"
		}
		// When the step that noticed it was told before, it begins with that.
		if at := h.now.tape.newest(); time.Since(at) < justNow {
			o.at = at
		}
		return j.begin(k, h, o)
	case pod.Finished:
		return j.end(k, h, "done")
	case pod.Deleting:
		return j.begin(k, h, opening{kind: Delete, at: now.Removal.At})
	default:
		return nil
	}
}

// foundUp reports whether the runtime has a container of the pod.
func foundUp(s *pod.State) bool {
	for _, c := range s.Containers {
		if c.Live() {
			return true
		}
	}
	return false
}

// ran reports whether a container stage was running at some time.
func (t *tape) ran() bool {
	for _, p := range t.records {
		if p.kind == moved && p.state == dag.Running && isContainer(t.stageOf(p.stage)) {
			return true
		}
	}
	return false
}

func isContainer(id dag.ID) bool { return id.Kind == kindContainer || id.Kind == kindInit }
