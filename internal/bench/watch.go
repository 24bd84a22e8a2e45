package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// watch collects what an agent's hooks tell.
type watch struct {
	poke chan struct{}

	mu      sync.Mutex
	since   map[types.UID]time.Time
	started map[types.UID]Started
	gone    map[types.UID]bool
}

func newWatch() *watch {
	return &watch{
		poke: make(chan struct{}, 1), since: map[types.UID]time.Time{},
		started: map[types.UID]Started{}, gone: map[types.UID]bool{},
	}
}

func (w *watch) hooks() Hooks { return Hooks{Started: w.start, Gone: w.end} }

func (w *watch) given(uid types.UID, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since[uid] = at
}

func (w *watch) start(s Started) {
	w.mu.Lock()
	if _, mine := w.since[s.UID]; mine {
		w.started[s.UID] = s
	}
	w.mu.Unlock()
	w.wake()
}

func (w *watch) end(uid types.UID) {
	w.mu.Lock()
	if _, mine := w.since[uid]; mine {
		w.gone[uid] = true
	}
	w.mu.Unlock()
	w.wake()
}

func (w *watch) wake() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

func (w *watch) startedCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.started)
}

func (w *watch) goneCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.gone)
}

// goal is what is waited for: got grows to n.
type goal struct {
	what, word string
	n          int
	got        func() int
	progress   func(string)
}

// wait waits for a goal and tells about it every second.
func (w *watch) wait(ctx context.Context, g goal) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		got := g.got()
		if got >= g.n {
			return nil
		}
		select {
		case <-w.poke:
		case <-tick.C:
			g.progress(fmt.Sprintf("%s: %d/%d %s", g.what, got, g.n, g.word))
		case <-ctx.Done():
			return fmt.Errorf("%s: %d of %d pods are %s: %w", g.what, got, g.n, g.word, context.Cause(ctx))
		}
	}
}

// times is how long each start took, and what the starts waited for. It lets
// go of what the agent told.
func (w *watch) times() (took []float64, last time.Time, path pathSum, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, s := range w.started {
		if s.Outcome != "ready" {
			err = fmt.Errorf("pod %s did not get ready: its start ended as %q", uid, s.Outcome)
		}
		took = append(took, ms(s.At.Sub(w.since[uid])))
		if s.At.After(last) {
			last = s.At
		}
		if s.Path != nil {
			path.add(s.Path())
		}
	}
	clear(w.started)
	return took, last, path, err
}
