package image

import (
	"context"
	"maps"
	"sync"
	"time"
)

// fresh is how long an image that was found counts as used: by then the pod
// that it was found for shows that it wants it.
const fresh = time.Minute

// guard keeps looks at images and their removal apart: a pod is never told of
// an image that is being removed, and an image that a pod was told of is not
// removed. The zero value is ready to use.
type guard struct {
	mu       sync.Mutex
	changes  uint64                   // grows when a removal begins and when it ends
	removing map[string]chan struct{} // by ID, closed when it has ended
	found    map[string]time.Time     // by ID, when a pod was told of it last
}

// seen returns a mark for told.
func (g *guard) seen() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changes
}

// told notes that a pod is told of the image, which was seen after the mark.
// It is not ok when images were removed since: the caller looks again, once
// the removal of this one, if any, has ended.
func (g *guard) told(ctx context.Context, id string, mark uint64) (ok bool, _ error) {
	g.mu.Lock()
	if g.changes == mark && g.removing[id] == nil {
		if g.found == nil {
			g.found = map[string]time.Time{}
		}
		now := time.Now()
		g.expire(now)
		g.found[id] = now
		g.mu.Unlock()
		return true, nil
	}
	ended := g.removing[id]
	g.mu.Unlock()
	if ended == nil {
		return false, nil
	}
	select {
	case <-ended:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// expire forgets what no longer counts as found, with g.mu held.
func (g *guard) expire(now time.Time) {
	maps.DeleteFunc(g.found, func(_ string, at time.Time) bool { return now.Sub(at) >= fresh })
}

// remove runs remove unless a pod was told of the image a short while ago, and
// reports whether it did.
func (g *guard) remove(id string, remove func() error) (did bool, _ error) {
	g.mu.Lock()
	g.expire(time.Now())
	if _, used := g.found[id]; used || g.removing[id] != nil {
		g.mu.Unlock()
		return false, nil
	}
	if g.removing == nil {
		g.removing = map[string]chan struct{}{}
	}
	ended := make(chan struct{})
	g.removing[id] = ended
	g.changes++
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.removing, id)
		g.changes++
		close(ended)
	}()
	return true, remove()
}
