package crisim

import (
	"container/heap"
	"time"
)

// timers runs what is due in order of time, and of scheduling where times are equal, one after the other: so the same
// script gives the same order of events in every run. It costs one timer however many containers wait. Guarded by
// Runtime.mu.
type timers struct {
	queue  taskQueue
	seq    uint64
	alarm  *time.Timer
	firing bool // fire is at work and will look at the queue again
	ended  bool
}

type task struct {
	due   time.Time
	seq   uint64
	index int // in the queue, -1 outside
	run   func()
}

// after runs f in d, without r.mu held, unless it is cancelled or the runtime ends before. r.mu is held now.
func (r *Runtime) after(d time.Duration, f func()) *task {
	ts := &r.timers
	ts.seq++
	t := &task{due: time.Now().Add(d), seq: ts.seq, run: f, index: -1}
	if ts.ended {
		return t
	}
	heap.Push(&ts.queue, t)
	if t.index == 0 && !ts.firing {
		r.arm()
	}
	return t
}

// cancel is for tasks that have not begun; others are not harmed. r.mu is held.
func (r *Runtime) cancel(t *task) {
	if t.index >= 0 {
		heap.Remove(&r.timers.queue, t.index)
	}
}

func (r *Runtime) arm() {
	ts := &r.timers
	if len(ts.queue) == 0 || ts.ended {
		return
	}
	d := time.Until(ts.queue[0].due)
	if ts.alarm == nil {
		ts.alarm = time.AfterFunc(d, r.fire)
		return
	}
	ts.alarm.Reset(d)
}

func (r *Runtime) fire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	ts := &r.timers
	if ts.firing {
		return
	}
	ts.firing = true
	for len(ts.queue) > 0 && !ts.queue[0].due.After(time.Now()) {
		t := heap.Pop(&ts.queue).(*task) //nolint:forcetypeassert // nothing else is put in
		r.mu.Unlock()
		t.run()
		r.mu.Lock()
	}
	ts.firing = false
	r.arm()
}

// endTimers forgets all tasks for good. r.mu is held.
func (r *Runtime) endTimers() {
	ts := &r.timers
	ts.ended, ts.queue = true, nil
	if ts.alarm != nil {
		ts.alarm.Stop()
	}
}

type taskQueue []*task

func (q taskQueue) Len() int { return len(q) }
func (q taskQueue) Less(i, j int) bool {
	if !q[i].due.Equal(q[j].due) {
		return q[i].due.Before(q[j].due)
	}
	return q[i].seq < q[j].seq
}

func (q taskQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *taskQueue) Push(x any) {
	t := x.(*task) //nolint:forcetypeassert // by heap.Push of after only
	t.index = len(*q)
	*q = append(*q, t)
}

// Pop implements heap.Interface.
func (q *taskQueue) Pop() any {
	old := *q
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	t.index = -1
	return t
}
