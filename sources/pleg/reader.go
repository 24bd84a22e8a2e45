package pleg

import (
	"sync"

	"github.com/sourcegraph/conc"
	"k8s.io/apimachinery/pkg/types"
)

// reader reads pods in detail: a few at a time, one at a time per pod, and
// without a goroutine when there is nothing to read. A pod whose read hangs
// takes one of the few, and nothing else waits for it.
type reader struct {
	owner *conc.WaitGroup
	limit int

	mu      sync.Mutex
	workers int
	queue   []types.UID          // of the jobs that wait
	jobs    map[types.UID]func() // waiting or running
	again   map[types.UID]func() // to be done after that
}

func newReader(owner *conc.WaitGroup, limit int) *reader {
	return &reader{owner: owner, limit: limit, jobs: map[types.UID]func(){}, again: map[types.UID]func(){}}
}

// busy reports whether the pod is being read, or waits for it.
func (r *reader) busy(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.jobs[uid]
	return ok
}

// add has a pod read by do, after the read that is there already. It replaces
// another one that waits for that.
func (r *reader) add(uid types.UID, do func()) { r.put(uid, do, true) }

// hint is add, but where another read waits already that one has to do, and
// hint returns false.
func (r *reader) hint(uid types.UID, do func()) bool { return r.put(uid, do, false) }

func (r *reader) put(uid types.UID, do func(), replace bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.jobs[uid]; ok {
		if _, ok := r.again[uid]; ok && !replace {
			return false
		}
		r.again[uid] = do
		return true
	}
	r.jobs[uid] = do
	r.queue = append(r.queue, uid)
	if r.workers < r.limit {
		r.workers++
		r.owner.Go(r.work)
	}
	return true
}

func (r *reader) work() {
	for {
		uid, do, ok := r.take()
		if !ok {
			return
		}
		do()
		r.done(uid)
	}
}

func (r *reader) take() (types.UID, func(), bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		r.workers--
		return "", nil, false
	}
	uid := r.queue[0]
	r.queue = r.queue[1:]
	return uid, r.jobs[uid], true
}

func (r *reader) done(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.jobs, uid)
	if do, ok := r.again[uid]; ok {
		delete(r.again, uid)
		r.jobs[uid] = do
		r.queue = append(r.queue, uid)
	}
}
