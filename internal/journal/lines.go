package journal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
)

// Schema names the JSON form of a Log.
const Schema = "flowlet.dev/journal/v1"

// Log is the history of a pod as one list of lines, oldest first.
type Log struct {
	Schema  string `json:"schema"`
	Pod     string `json:"pod"` // namespace/name, or the key of a node chore
	UID     string `json:"uid,omitempty"`
	Dropped int    `json:"dropped,omitempty"` // records that did not fit
	Lines   []Line `json:"lines"`
}

// Line is one thing that happened.
type Line struct {
	At      time.Time `json:"at"`
	Episode Kind      `json:"episode"`
	What    string    `json:"what"` // event, move, call
	Stage   string    `json:"stage,omitempty"`
	State   string    `json:"state,omitempty"` // of a move: the new one
	Text    string    `json:"text,omitempty"`
	Reason  string    `json:"reason,omitempty"` // word of an error
	Cause   uint64    `json:"cause,omitempty"`
}

// LogOf returns the lines of some episodes of one pod.
func LogOf(episodes []Episode) Log {
	l := Log{Schema: Schema, Lines: []Line{}}
	told := map[Line]bool{} // an episode may begin with the last entry of the one before
	for i := range episodes {
		e := &episodes[i]
		l.Pod, l.UID = string(e.Key), e.Pod.UID
		if e.Pod.Name != "" {
			l.Pod = e.Pod.Namespace + "/" + e.Pod.Name
		}
		l.Dropped += e.Dropped
		for _, ev := range e.Events {
			l.Lines = append(l.Lines, Line{At: ev.At, Episode: e.Kind, What: "event", Text: strings.TrimSpace(ev.Source + ": " + ev.Change), Cause: ev.Cause})
		}
		for _, m := range e.Moves {
			line := lineOf(e.Kind, m)
			same := line
			same.Episode = ""
			if !told[same] {
				told[same] = true
				l.Lines = append(l.Lines, line)
			}
		}
		for _, c := range e.Calls {
			l.Lines = append(l.Lines, callLine(e.Kind, c))
		}
	}
	slices.SortStableFunc(l.Lines, func(a, b Line) int { return a.At.Compare(b.At) })
	return l
}

func lineOf(kind Kind, m Move) Line {
	l := Line{At: m.At, Episode: kind, What: "move", Stage: m.ID.String(), State: m.Entry.State.String(), Text: m.Entry.Key.Do}
	switch e := m.Entry; {
	case m.Gone:
		l.State, l.Text = "forgotten", ""
	case e.Err != nil && e.State == dag.Failed:
		l.Text, l.Reason = fmt.Sprintf("attempt %d: %v", e.Attempt, e.Err), pod.ReasonOf(e.Err)
	case e.State == dag.Waiting && len(e.On) > 0:
		on := make([]string, len(e.On))
		for i, id := range e.On {
			on[i] = id.String()
		}
		l.Text = "for " + strings.Join(on, ", ")
	case e.Why != "":
		l.Text = e.Why
	}
	return l
}

func callLine(kind Kind, c Call) Line {
	l := Line{At: c.To, Episode: kind, What: "call", Stage: c.Stage.String(), Text: fmt.Sprintf("%s took %s", c.Method, c.To.Sub(c.From).Round(time.Microsecond))}
	if c.Err != "" {
		l.Text += ": " + c.Err
	}
	return l
}

// Text renders the log, one line each; texts are not cut.
func (l Log) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", l.Pod, l.UID)
	var day string
	for _, line := range l.Lines {
		at := line.At.UTC()
		if d := at.Format(time.DateOnly); d != day {
			day = d
			fmt.Fprintf(&b, "%s (UTC)\n", day)
		}
		what := line.What
		if what == "move" {
			what = line.State
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("%s %-9s %-22s %s", at.Format("15:04:05.000"), what, line.Stage, line.Text), " ") + "\n")
	}
	if l.Dropped > 0 {
		fmt.Fprintf(&b, "%d records did not fit.\n", l.Dropped)
	}
	return b.String()
}
