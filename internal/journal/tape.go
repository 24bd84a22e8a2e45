package journal

import (
	"errors"
	"math"
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// tape is an append-only list of records in little memory: a pod start has
// many records but few different words, so each word is stored once and the
// records are numbers. The zero tape is empty.
type tape struct {
	records []packed
	words   []string
	stages  []dag.ID
	on      []ref // lists of stages, one after the other
	index   *index
}

// index finds the number of a word or stage; only a tape that grows needs one.
type index struct {
	words  map[string]ref
	stages map[dag.ID]ref
}

// ref is the number of a word or stage; 0 means none.
type ref uint16

// packed is one record, 56 bytes. Which fields count depends on its type.
type packed struct {
	at, until int64  // Unix nanoseconds; 0: none
	in        uint64 // inputs of a task key, or the cause of an event
	onFrom    uint32
	onLen     uint16
	attempt   uint16
	stage     ref
	do        ref // task, method of a call, or change of an event
	why       ref // reason, or source of an event
	err       ref
	reason    ref
	class     ref
	kind      recordKind
	state     dag.State
	atomic    bool
	onTime    bool
}

type recordKind uint8

const (
	moved recordKind = iota
	gone
	called
	came
)

// full reports whether the numbers of this tape may run out with the next record.
func (t *tape) full() bool {
	return len(t.words) > math.MaxUint16-8 || len(t.stages) > math.MaxUint16-256
}

func (t *tape) indexed() *index {
	if t.index == nil {
		t.index = &index{words: make(map[string]ref, len(t.words)), stages: make(map[dag.ID]ref, len(t.stages))}
		for i, w := range t.words {
			t.index.words[w] = ref(i + 1)
		}
		for i, s := range t.stages {
			t.index.stages[s] = ref(i + 1)
		}
	}
	return t.index
}

func (t *tape) word(w string) ref {
	if w == "" {
		return 0
	}
	words := t.indexed().words
	n, ok := words[w]
	if !ok {
		t.words = append(t.words, w)
		n = ref(len(t.words))
		words[w] = n
	}
	return n
}

func (t *tape) stage(id dag.ID) ref {
	stages := t.indexed().stages
	n, ok := stages[id]
	if !ok {
		t.stages = append(t.stages, id)
		n = ref(len(t.stages))
		stages[id] = n
	}
	return n
}

func (t *tape) wordOf(n ref) string {
	if n == 0 {
		return ""
	}
	return t.words[n-1]
}

func (t *tape) stageOf(n ref) dag.ID {
	if n == 0 {
		return dag.ID{}
	}
	return t.stages[n-1]
}

// move appends a stage's new entry.
func (t *tape) move(m Move) {
	e := m.Entry
	p := packed{
		at: nanos(m.At), until: nanos(e.Until), in: e.Key.In, attempt: uint16(min(e.Attempt, math.MaxUint16)), stage: t.stage(m.ID),
		do: t.word(e.Key.Do), why: t.word(e.Why), class: t.word(e.Class), state: e.State, atomic: e.Atomic, onTime: e.OnTime,
	}
	if m.Gone {
		p.kind = gone
	}
	if e.Err != nil {
		p.err, p.reason = t.word(e.Err.Error()), t.word(pod.ReasonOf(e.Err))
	}
	p.onFrom = uint32(len(t.on))
	for _, id := range e.On {
		t.on = append(t.on, t.stage(id))
	}
	p.onLen = uint16(uint32(len(t.on)) - p.onFrom)
	t.records = append(t.records, p)
}

// call appends a call that a stage made.
func (t *tape) call(c Call) {
	p := packed{
		kind: called, at: nanos(c.From), until: nanos(c.To), in: c.Span, stage: t.stage(c.Stage),
		attempt: uint16(min(c.Attempt, math.MaxUint16)), do: t.word(c.Method), err: t.word(c.Err),
	}
	t.records = append(t.records, p)
}

// event appends an event from outside.
func (t *tape) event(e Event) {
	t.records = append(t.records, packed{kind: came, at: nanos(e.At), in: e.Cause, do: t.word(e.Change), why: t.word(e.Source)})
}

// unmove is move's inverse. The error has the same text and reason as the
// original, not its type; Owns is not kept.
func (t *tape) unmove(p packed) Move {
	e := dag.Entry{
		Key: dag.Key{Do: t.wordOf(p.do), In: p.in}, State: p.state, Since: timeOf(p.at), Until: timeOf(p.until),
		Attempt: int(p.attempt), Why: t.wordOf(p.why), Class: t.wordOf(p.class), Atomic: p.atomic, OnTime: p.onTime,
	}
	if p.err != 0 {
		e.Err = errors.New(t.wordOf(p.err))
		if p.reason != 0 {
			e.Err = pod.WithReason(t.wordOf(p.reason), e.Err)
		}
	}
	for _, n := range t.on[p.onFrom : p.onFrom+uint32(p.onLen)] {
		e.On = append(e.On, t.stageOf(n))
	}
	return Move{At: e.Since, ID: t.stageOf(p.stage), Entry: e, Gone: p.kind == gone}
}

func (t *tape) uncall(p packed) Call {
	return Call{
		Stage: t.stageOf(p.stage), Attempt: int(p.attempt), Method: t.wordOf(p.do),
		From: timeOf(p.at), To: timeOf(p.until), Err: t.wordOf(p.err), Span: p.in,
	}
}

func (t *tape) unevent(p packed) Event {
	return Event{At: timeOf(p.at), Change: t.wordOf(p.do), Source: t.wordOf(p.why), Cause: p.in}
}

// tail returns a tape with the newest n records only.
func (t *tape) tail(n int) tape {
	var out tape
	for _, p := range t.records[max(0, len(t.records)-n):] {
		out.copy(t, p)
	}
	return out
}

// since returns a tape with the newest records that are not older than at, and
// the event just before them.
func (t *tape) since(at time.Time) tape {
	n := 0
	for i := len(t.records) - 1; i >= 0 && t.records[i].at >= nanos(at); i-- {
		n++
	}
	if i := len(t.records) - n - 1; i >= 0 && t.records[i].kind == came {
		n++
	}
	if n == 0 {
		return tape{}
	}
	return t.tail(n)
}

// newest returns when the newest record was made; zero if there is none.
func (t *tape) newest() time.Time {
	if len(t.records) == 0 {
		return time.Time{}
	}
	return timeOf(t.records[len(t.records)-1].at)
}

func (t *tape) copy(from *tape, p packed) {
	switch p.kind {
	case called:
		t.call(from.uncall(p))
	case came:
		t.event(from.unevent(p))
	case moved, gone:
		t.move(from.unmove(p))
	}
}

// clip gives back all memory that only growing needs.
func (t *tape) clip() {
	t.index = nil
	t.records = clipped(t.records)
	t.words = clipped(t.words)
	t.stages = clipped(t.stages)
	t.on = clipped(t.on)
}

// clipped returns a copy without room to grow: slices.Clip would keep the memory.
func clipped[T any](s []T) []T {
	out := make([]T, len(s))
	copy(out, s)
	return out
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func timeOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}
