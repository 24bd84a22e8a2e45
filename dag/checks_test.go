package dag_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/dag/dagtest"
)

// check looks at one move. It is called with the engine's lock held.
func (l *life) check(m dagtest.Move[string], memos map[string]dag.Memo) string {
	if m.To.Since.IsZero() {
		return ""
	}
	from, to := m.From, m.To
	switch same := from.Key == to.Key; {
	case to.State == dag.Running:
		breach := l.checkEdges(m, memos[m.Key])
		if !joined(to) {
			breach = cmp.Or(breach, l.checkLimit(to.Class, memos))
		}
		return breach
	case to.State == dag.Failed:
		return checkBackoff(to)
	case from.State == dag.Failed && same && from.Until.IsZero():
		return "a terminal failure did not stay"
	case from.State == dag.Failed && same && to.Since.Before(from.Until):
		return "the back-off was cut short"
	}
	return ""
}

// checkEdges looks at the edges of a stage that starts.
func (l *life) checkEdges(m dagtest.Move[string], memo dag.Memo) string {
	n := l.node(m.Key, m.ID)
	for _, need := range n.Need {
		if memo[need].State != dag.Done {
			return fmt.Sprintf("started while %s is %s", need, memo[need].State)
		}
	}
	for _, after := range n.After {
		if memo[after].State == dag.Running {
			return fmt.Sprintf("started while %s runs", after)
		}
	}
	return ""
}

func (l *life) node(k string, stage dag.ID) node {
	for _, shape := range l.shapes[k] {
		for _, n := range shape {
			if n.ID == stage {
				return n
			}
		}
	}
	panic("no such stage")
}

// joined reports whether a stage shares the slot of another.
func joined(e dag.Entry) bool { return e.Why != "" }

func (l *life) checkLimit(class string, memos map[string]dag.Memo) string {
	n := 0
	for _, memo := range memos {
		for _, e := range memo {
			if e.State == dag.Running && e.Class == class && !joined(e) {
				n++
			}
		}
	}
	limit := map[string]int{"a": 2, "b/x": 1, "b/y": 1}[class]
	if l.doubled.Load() {
		limit *= 2
	}
	if n > limit {
		return fmt.Sprintf("%d runs of class %s, which has %d slots", n, class, limit)
	}
	return ""
}

// checkBackoff compares the back-off of a failure with the rule, to the nanosecond.
func checkBackoff(e dag.Entry) string {
	want := min(s<<(e.Attempt-1), 5*s)
	switch {
	case errors.Is(e.Err, errBroken):
		want = 0
	case errors.Is(e.Err, errBusy):
		want = 333 * time.Millisecond
	}
	if got := e.Until.Sub(e.Since); want == 0 && !e.Until.IsZero() || want > 0 && got != want {
		return fmt.Sprintf("back-off of %v and not %v after attempt %d: %v", got, want, e.Attempt, e.Err)
	}
	return ""
}

// unsettled names a stage that should have come further by now, or that moves
// although nothing happens.
func (l *life) unsettled() string {
	moves := len(l.recorder.Moves())
	for k := range l.shapes {
		g := l.graph(k)
		memo, _ := l.engine.Step(k, g)
		for _, n := range g.Nodes() {
			switch e := memo[n.ID]; e.State {
			case dag.Done:
			case dag.Failed:
				if !e.Until.IsZero() {
					return fmt.Sprintf("%s %s still fails: %+v", k, n.ID, e)
				}
			case dag.Waiting:
				if !slices.ContainsFunc(e.On, func(on dag.ID) bool { return memo[on].State != dag.Done }) {
					return fmt.Sprintf("%s %s waits for nothing: %+v", k, n.ID, e)
				}
			default:
				return fmt.Sprintf("%s %s is still %s", k, n.ID, e.State)
			}
		}
	}
	synctest.Wait()
	if more := l.recorder.Moves()[moves:]; len(more) > 0 {
		return fmt.Sprintf("a settled graph moved: %+v", more)
	}
	return ""
}

// undelivered names a run that was not delivered exactly once to a stage.
func (l *life) undelivered() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := map[int]bool{}
	for d, n := range l.delivered {
		known[d.run] = true
		if n != 1 {
			l.breaks("%+v %d times", d, n)
		}
	}
	if len(known) != l.runs {
		l.breaks("%d runs and %d were delivered", l.runs, len(known))
	}
	return l.broken
}
