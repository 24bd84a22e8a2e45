package journal

import (
	"context"
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Kinds of stages that begin and end the restart of a container; see the
// stages of a pod in docs/architecture.md.
const (
	kindContainer = "container"
	kindInit      = "init"
	kindStop      = "stop"
)

// Moved implements dag.Observer.
func (j *Journal) Moved(k pod.Key, id dag.ID, from, to dag.Entry) {
	forgotten := to.Since.IsZero() && to.State == dag.Waiting
	at := to.Since
	if forgotten {
		at = time.Now()
	}
	j.mu.Lock()
	h := j.history(k)
	if h.late.waitsFor(id) {
		j.append(h.late.episode.ep, func(t *tape) { t.move(Move{At: at, ID: id, Entry: to, Gone: forgotten}) })
		ended := h.late.over(id)
		j.mu.Unlock()
		j.tell(ended)
		return
	}
	begun := j.restarts(k, h, id, to, at)
	j.append(h.now, func(t *tape) {
		if _, known := t.indexed().stages[id]; !known && from.State != dag.Done && !from.Since.IsZero() {
			t.move(Move{At: from.Since, ID: id, Entry: from})
		}
		t.move(Move{At: at, ID: id, Entry: to, Gone: forgotten})
	})
	ended := j.restarted(k, h, id, to, forgotten)
	j.mu.Unlock()
	j.tell(begun)
	j.tell(ended)
}

// restarts opens a Restart when a container of a pod at rest gets work.
func (j *Journal) restarts(k pod.Key, h *history, id dag.ID, to dag.Entry, at time.Time) (ended *Closed) {
	container := isContainer(id)
	if !container && id.Kind != kindStop || to.State == dag.Done || to.Key == (dag.Key{}) {
		return nil
	}
	if h.now.kind == Quiet && h.pod.UID != "" {
		ended = j.begin(k, h, opening{kind: Restart, of: id.Of, at: at})
		h.restart = map[dag.ID]struct{}{}
	}
	if container && h.restart != nil {
		h.restart[id] = struct{}{}
	}
	return ended
}

// restarted closes a Restart when the last container that it waits for is settled.
func (j *Journal) restarted(k pod.Key, h *history, id dag.ID, to dag.Entry, forgotten bool) *Closed {
	if _, waited := h.restart[id]; !waited || h.now.kind != Restart {
		return nil
	}
	final := to.State == dag.Failed && to.Until.IsZero()
	if to.State != dag.Done && !final && !forgotten {
		return nil
	}
	delete(h.restart, id)
	switch {
	case len(h.restart) > 0:
		return nil
	case final:
		return j.end(k, h, "failed")
	case forgotten:
		return j.end(k, h, "overtaken")
	default:
		return j.end(k, h, "done")
	}
}

// Run is the run of a stage in whose context a call is made.
type Run struct {
	Key     pod.Key
	Pod     Pod
	Kind    Kind // of the episode that was open when the run began
	Of      string
	Began   time.Time
	Stage   dag.ID
	Attempt int
	Since   time.Time // when the run began
}

type runKey struct{}

// Context implements dag.Observer: calls in that context belong to the run.
func (j *Journal) Context(ctx context.Context, k pod.Key, id dag.ID) context.Context {
	j.mu.Lock()
	defer j.mu.Unlock()
	h, ok := j.pods[k]
	if !ok {
		return ctx
	}
	r := &Run{Key: k, Pod: h.pod, Kind: h.now.kind, Of: h.now.of, Began: h.now.began, Stage: id}
	t := &h.now.tape
	for i := len(t.records) - 1; i >= 0; i-- {
		if p := t.records[i]; p.kind == moved && p.state == dag.Running && t.stageOf(p.stage) == id {
			r.Attempt, r.Since = int(p.attempt), timeOf(p.at)
			break
		}
	}
	return context.WithValue(ctx, runKey{}, r)
}

// RunOf returns the run that ctx belongs to, or nil.
func RunOf(ctx context.Context) *Run {
	r, _ := ctx.Value(runKey{}).(*Run)
	return r
}

// Called notes a call that the run of ctx made; without a run nothing is noted.
func (j *Journal) Called(ctx context.Context, c Call) {
	r := RunOf(ctx)
	if r == nil {
		return
	}
	c.Stage, c.Attempt = r.Stage, r.Attempt
	j.mu.Lock()
	defer j.mu.Unlock()
	h, ok := j.pods[r.Key]
	if !ok {
		return
	}
	e := h.now
	if h.late.waitsFor(r.Stage) {
		e = h.late.episode.ep
	}
	j.append(e, func(t *tape) { t.call(c) })
}
