package explain_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/explain"
)

// move is one entry of a story.
type move struct {
	id dag.ID
	e  dag.Entry
}

func entries(moves []move) iter.Seq2[dag.ID, dag.Entry] {
	return func(yield func(dag.ID, dag.Entry) bool) {
		for _, m := range moves {
			if !yield(m.id, m.e) {
				return
			}
		}
	}
}

const ms = time.Millisecond

func to(id dag.ID, after time.Duration, s dag.State, on ...dag.ID) move {
	e := dag.Entry{Key: do("do " + id.Kind), Class: id.Kind, State: s, Since: at(after), On: on}
	if s == dag.Running || s == dag.Done {
		e.Attempt = 1
	}
	return move{id, e}
}

var (
	admit   = id("admit", "")
	sandbox = id("sandbox", "")
	image   = id("image", "web")
	web     = id("container", "web")
)

// start is a pod start whose pull fails once: 0 admit 5 sandbox 105, image
// queued 1 pull 30..60, back-off ..160, pull 160..300, container ..350.
func start() []move {
	failed := to(image, 60*ms, dag.Failed)
	failed.e.Err, failed.e.Until, failed.e.Attempt = errPull, at(160*ms), 1
	again := to(image, 160*ms, dag.Running)
	again.e.Attempt = 2
	return []move{
		to(admit, 1*ms, dag.Queued), to(admit, 1*ms, dag.Running), to(image, 1*ms, dag.Queued),
		to(sandbox, 1*ms, dag.Waiting, admit), to(web, 1*ms, dag.Waiting, sandbox, image),
		to(admit, 5*ms, dag.Done), to(sandbox, 5*ms, dag.Queued), to(sandbox, 5*ms, dag.Running),
		to(image, 30*ms, dag.Running), failed, to(sandbox, 105*ms, dag.Done), to(web, 105*ms, dag.Waiting, image),
		to(image, 160*ms, dag.Queued), again, to(image, 300*ms, dag.Done),
		to(web, 301*ms, dag.Queued), to(web, 301*ms, dag.Running), to(web, 350*ms, dag.Done),
	}
}

func TestSpansCoverEachStage(t *testing.T) {
	spans := explain.Spans(entries(start()), explain.Window{From: t0, To: at(400 * ms)})
	var got []string
	for _, s := range spans {
		got = append(got, fmt.Sprintf("%s %s %d-%d %s", s.ID(), s.State, s.From.Sub(t0).Milliseconds(), s.To.Sub(t0).Milliseconds(), s.Outcome))
	}
	require.Equal(t, []string{
		"sandbox waiting 1-5 ", "admit running 1-5 ok",
	}, []string{got[1], got[0]})
	require.Contains(t, got, "image[web] queued 1-30 ")
	require.Contains(t, got, "image[web] running 30-60 failed")
	require.Contains(t, got, "image[web] failed 60-160 ")
	require.Contains(t, got, "image[web] running 160-300 ok")
	require.Contains(t, got, "container[web] waiting 105-301 ")
	require.Len(t, got, 10)
}

func TestSpansOutcomes(t *testing.T) {
	run := to(image, 0, dag.Running)
	for _, c := range []struct {
		name string
		next *dag.Entry
		want string
		open bool
	}{
		{"still runs", nil, "", true},
		{"done", &dag.Entry{State: dag.Done, Key: do("x"), Since: at(ms)}, explain.OK, false},
		{"lost", &dag.Entry{State: dag.Lost, Key: do("x"), Since: at(ms)}, explain.LostRun, false},
		{"superseded", &dag.Entry{State: dag.Queued, Key: do("y"), Since: at(ms)}, explain.Cancelled, false},
		{"forgotten", &dag.Entry{Since: at(ms)}, explain.Cancelled, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			moves := []move{run}
			if c.next != nil {
				moves = append(moves, move{image, *c.next})
			}
			spans := explain.Spans(entries(moves), explain.Window{From: t0, To: at(2 * ms)})
			require.Equal(t, c.want, spans[0].Outcome)
			require.Equal(t, c.open, spans[0].Open)
		})
	}
}

// An init container is a run that starts it and a hold until it has ended.
func TestHoldThatEndsWithNothingToDo(t *testing.T) {
	init := id("init", "setup")
	held := to(init, ms, dag.Held)
	held.e.Why = "init container setup is running"
	moves := []move{to(init, 0, dag.Running), held, to(init, 9*ms, dag.Done)}
	spans := explain.Spans(entries(moves), explain.Window{From: t0, To: at(9 * ms)})
	require.Equal(t, explain.OK, spans[1].Outcome)
	path := explain.CriticalPath(spans, explain.Window{From: t0, To: at(9 * ms)})
	require.Equal(t, "init container setup is running", path[1].Note)
}

func TestCriticalPathOfAStart(t *testing.T) {
	w := explain.Window{From: t0, To: at(400 * ms)}
	tr := explain.Describe(explain.Trace{
		Pod: "shop/web", Kind: "pod.start", TraceID: "0102030405060708090a0b0c0d0e0f10", From: w.From, To: w.To, Outcome: "ready",
		Spans: explain.Spans(entries(start()), w),
	})
	var got []string
	for _, s := range tr.Critical {
		got = append(got, fmt.Sprintf("%s %s %d", s.Stage, s.State, s.Duration().Milliseconds()))
	}
	require.Equal(t, []string{
		" idle 1", "image[web] queued 29", "image[web] running 30", "image[web] failed 100", "image[web] running 140",
		"container[web] waiting 1", "container[web] running 49", " idle 50",
	}, got)
	golden(t, "trace.txt", tr.Text())
	fits80(t, tr.Text())
	data, err := json.Marshal(tr)
	require.NoError(t, err)
	var back explain.Trace
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, tr.Text(), back.Text())
}

// Whatever the spans, the segments cover the window exactly.
func TestCriticalPathSumsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := explain.Window{From: t0, To: at(time.Duration(rapid.IntRange(0, 500).Draw(t, "length")) * ms)}
		var moves []move
		n := rapid.IntRange(0, 6).Draw(t, "stages")
		for i := range n {
			me, clock := id("k", fmt.Sprint(i)), rapid.IntRange(-20, 100).Draw(t, "first")
			for range rapid.IntRange(0, 8).Draw(t, "moves") {
				m := to(me, time.Duration(clock)*ms, dag.State(rapid.IntRange(0, int(dag.Done)).Draw(t, "state")))
				if m.e.State == dag.Waiting {
					m.e.On = []dag.ID{id("k", fmt.Sprint(rapid.IntRange(0, n).Draw(t, "on")))}
				}
				moves = append(moves, m)
				clock += rapid.IntRange(0, 90).Draw(t, "step")
			}
		}
		at := w.From
		for _, s := range explain.CriticalPath(explain.Spans(entries(moves), w), w) {
			if !s.From.Equal(at) || s.Duration() <= 0 {
				t.Fatalf("segment %+v does not begin at %v, or is empty", s, at)
			}
			at = s.To
		}
		if !at.Equal(w.To) {
			t.Fatalf("the path ends at %v, the window at %v", at, w.To)
		}
	})
}
