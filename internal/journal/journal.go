package journal

import (
	"slices"
	"sync"
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Options bound a Journal. Zero fields mean the defaults.
type Options struct {
	Keep  int // closed episodes of all pods together (default 200)
	Limit int // records of one episode (default 2000); what comes after is counted only
	Tail  int // records of a pod's quiet time (default 48)
	// Ended is told of each episode that closed and has moves. It may run with
	// the engine's lock held: it must not block and must not call the engine.
	Ended func(Closed)
}

// Closed is an episode that ended. It does not change any more.
type Closed struct {
	key pod.Key
	ep  *episode
}

// Kind returns the kind of the episode.
func (c Closed) Kind() Kind { return c.ep.kind }

// Episode returns the episode. It takes some microseconds; any goroutine may call it.
func (c Closed) Episode() Episode { return c.ep.unpack(c.key) }

// closedPerPod bounds the closed episodes of one pod besides its start, so
// that a crash loop does not push out what is kept of others.
const closedPerPod = 4

// Journal remembers what happened to each pod. See the package comment.
type Journal struct {
	options Options

	mu     sync.Mutex
	pods   map[pod.Key]*history
	closed []Closed // oldest first
}

var _ dag.Observer[pod.Key] = (*Journal)(nil)

// history is what is kept of one pod besides its closed episodes.
type history struct {
	pod     Pod
	now     *episode            // the open one, never nil
	restart map[dag.ID]struct{} // container stages that an open Restart waits for
	late    late
}

// New returns an empty journal.
func New(o Options) *Journal {
	o.Keep, o.Limit, o.Tail = orDefault(o.Keep, 200), orDefault(o.Limit, 2000), orDefault(o.Tail, 48)
	if o.Ended == nil {
		o.Ended = func(Closed) {}
	}
	return &Journal{options: o, pods: make(map[pod.Key]*history)}
}

func orDefault(v, d int) int {
	if v <= 0 {
		return d
	}
	return v
}

// Begin ends the pod's open episode as "overtaken", if it is not a quiet one,
// and opens another. A zero at means now.
func (j *Journal) Begin(k pod.Key, kind Kind, at time.Time) {
	j.mu.Lock()
	ended := j.begin(k, j.history(k), opening{kind: kind, at: at})
	j.mu.Unlock()
	j.tell(ended)
}

// End closes the pod's open episode with that outcome, now. Nothing happens in
// a quiet time.
func (j *Journal) End(k pod.Key, outcome string) {
	j.mu.Lock()
	ended := j.end(k, j.history(k), outcome)
	j.mu.Unlock()
	j.tell(ended)
}

// StartEnded closes the pod's start (or adoption) with an outcome: "ready",
// "succeeded" or "failed". Only the first call counts. Runs that are going on
// still belong to it, and Ended is told when they are over: the news that a
// container runs may be faster than the answer to the call that started it.
func (j *Journal) StartEnded(k pod.Key, outcome string) {
	j.mu.Lock()
	var before, ended *Closed
	if h, ok := j.pods[k]; ok && (h.now.kind == Start || h.now.kind == Adopt) {
		runs := h.now.tape.running()
		before, ended = h.late.giveUp(), j.end(k, h, outcome)
		if ended != nil && len(runs) > 0 {
			h.late, ended = late{episode: ended, runs: runs}, nil
		}
	}
	j.mu.Unlock()
	j.tell(before)
	j.tell(ended)
}

// Event notes something learnt from outside.
func (j *Journal) Event(k pod.Key, e Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.append(j.history(k).now, func(t *tape) { t.event(e) })
}

// Forget ends the pod's open episode as "done" and drops what is remembered of
// the pod, but for its closed episodes.
func (j *Journal) Forget(k pod.Key) {
	j.mu.Lock()
	var before, ended *Closed
	if h, ok := j.pods[k]; ok {
		before, ended = h.late.giveUp(), j.end(k, h, "done")
		delete(j.pods, k)
	}
	j.mu.Unlock()
	j.tell(before)
	j.tell(ended)
}

// Episodes returns what is remembered of a pod, oldest first; the last one may
// be open. A pod that is gone is remembered for as long as there is room.
func (j *Journal) Episodes(k pod.Key) []Episode {
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []Episode
	for _, c := range j.closed {
		if c.key == k {
			all = append(all, c.Episode())
		}
	}
	if h, ok := j.pods[k]; ok {
		all = append(all, h.now.unpack(k))
	}
	return all
}

func (j *Journal) tell(c *Closed) {
	if c != nil {
		j.options.Ended(*c)
	}
}

func (j *Journal) history(k pod.Key) *history {
	h, ok := j.pods[k]
	if !ok {
		h = &history{now: &episode{kind: Quiet, began: time.Now()}}
		j.pods[k] = h
	}
	return h
}

// opening says which episode to open and how the one before it ended.
type opening struct {
	kind   Kind
	of     string
	at     time.Time // zero: now
	before string    // outcome of the open one; empty: overtaken
}

func (j *Journal) begin(k pod.Key, h *history, o opening) *Closed {
	if o.at.IsZero() {
		o.at = time.Now()
	}
	if o.before == "" {
		o.before = "overtaken"
	}
	// The event that made the difference belongs to what it began, and so do
	// moves since then that were told before it.
	since := h.now.tape.since(o.at)
	ended := j.end(k, h, o.before)
	h.now = &episode{pod: h.pod, kind: o.kind, of: o.of, began: o.at, tape: since}
	return ended
}

// end closes the open episode and opens a quiet one.
func (j *Journal) end(k pod.Key, h *history, outcome string) *Closed {
	e := h.now
	if e.kind == Quiet {
		return nil
	}
	e.pod, e.ended, e.outcome = h.pod, time.Now(), outcome
	e.tape.clip()
	h.now, h.restart = &episode{pod: h.pod, kind: Quiet, began: e.ended}, nil
	if len(e.tape.records) == 0 {
		return nil
	}
	c := Closed{k, e}
	j.keep(c)
	return &c
}

func (j *Journal) keep(c Closed) {
	j.closed = append(j.closed, c)
	mine := 0
	for _, o := range j.closed {
		if o.key == c.key && o.ep.kind != Start {
			mine++
		}
	}
	drop := -1
	switch {
	case mine > closedPerPod:
		drop = slices.IndexFunc(j.closed, func(o Closed) bool { return o.key == c.key && o.ep.kind != Start })
	case len(j.closed) > j.options.Keep:
		drop = 0
	}
	if drop >= 0 {
		j.closed = slices.Delete(j.closed, drop, drop+1)
	}
}

// append adds a record, within the bounds.
func (j *Journal) append(e *episode, add func(*tape)) {
	switch n := len(e.tape.records); {
	case e.kind == Quiet && n >= j.options.Tail:
		e.tape = e.tape.tail(j.options.Tail / 2)
		e.dropped += n - j.options.Tail/2
	case n >= j.options.Limit || e.tape.full():
		e.dropped++
		return
	}
	add(&e.tape)
}
