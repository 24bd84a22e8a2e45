package pleg

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Delays after which something is tried again.
func readDelay(failures int) time.Duration {
	return dag.Backoff{Initial: 2 * time.Second, Max: time.Minute}.Delay(failures)
}

func streamDelay(failures int) time.Duration {
	return dag.Backoff{Initial: time.Second, Max: 30 * time.Second}.Delay(failures)
}

// retries says when pods that could not be read in detail are tried again.
type retries struct {
	mu   sync.Mutex
	pods map[types.UID]retry
}

type retry struct {
	failures int
	at       time.Time
}

func (r *retries) note(uid types.UID, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.pods, uid)
		return
	}
	if r.pods == nil {
		r.pods = map[types.UID]retry{}
	}
	n := r.pods[uid].failures + 1
	r.pods[uid] = retry{n, time.Now().Add(readDelay(n))}
}

func (r *retries) waits(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.pods[uid]
	return ok && time.Now().Before(t.at)
}

// keep forgets all but the pods that are still there.
func (r *retries) keep(pods []*pod.Observed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pods) == 0 {
		return
	}
	kept := map[types.UID]retry{}
	for _, o := range pods {
		if t, ok := r.pods[o.Identity.UID]; ok {
			kept[o.Identity.UID] = t
		}
	}
	r.pods = kept
}

// wait tells when some pods have been read.
type wait struct {
	mu   sync.Mutex
	left map[types.UID]bool
	all  chan struct{}
}

func newWait(pods []*pod.Observed) *wait {
	w := &wait{left: make(map[types.UID]bool, len(pods)), all: make(chan struct{})}
	for _, o := range pods {
		w.left[o.Identity.UID] = true
	}
	if len(pods) == 0 {
		close(w.all)
	}
	return w
}

func (w *wait) done(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.left, uid)
	if len(w.left) == 0 {
		close(w.all)
	}
}

// wait returns when all have been read, or after a time.
func (w *wait) wait(ctx context.Context, most time.Duration) {
	pause(ctx, most, w.all)
}

func (w *wait) missing(uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left[uid]
}
