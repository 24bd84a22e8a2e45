package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/flowlet/flowlet/dag"
)

// screen is how many blocking stages are told at length: the rest is counted,
// so that a report stays one screen of text.
const screen = 6

// Text renders the report.
func (r Report) Text() string {
	var b strings.Builder
	b.WriteString(r.Pod)
	if r.Phase != "" {
		b.WriteString("  " + r.Phase)
	}
	fmt.Fprintf(&b, "  %d of %d stages done\n", r.Done, r.Total)
	if len(r.Blocking) == 0 {
		b.WriteString("\nNothing is to be done, nothing is waited for.\n")
		return b.String()
	}
	for i, bl := range r.Blocking {
		if i == screen {
			fmt.Fprintf(&b, "\nand %d more (-o json shows all)\n", len(r.Blocking)-screen)
			break
		}
		b.WriteString("\n")
		bl.text(&b, r.At)
	}
	return b.String()
}

func (b Block) text(out *strings.Builder, now time.Time) {
	head := fmt.Sprintf("%s  %s for %s", b.Stage, blockWord(b.State), ago(now, b.Since))
	if b.Left {
		head += "  (no longer wanted)"
	}
	out.WriteString(head + "\n")
	if b.Do != "" {
		indent(out, 2, "task: "+b.Do)
	}
	for _, line := range b.Because(now) {
		indent(out, 2, line)
	}
	if len(b.Blocks) > 0 {
		indent(out, 2, "waiting for it: "+few(b.Blocks, 5))
	}
}

func blockWord(state string) string {
	switch state {
	case dag.Failed.String():
		return "failed, in back-off"
	case StateNew:
		return "not looked at yet"
	default:
		return state
	}
}

// Because says, in a line or two, what a stage waits for.
func (b Block) Because(now time.Time) []string {
	var out []string
	switch b.State {
	case dag.Held.String():
		out = append(out, b.Hold+b.next(now, ", until the facts change", ", for at most another "))
	case dag.Queued.String():
		out = append(out, b.queued(now))
	case dag.Waiting.String():
		out = append(out, "waits for "+b.Object+b.owner(now))
	case dag.Running.String():
		out = append(out, fmt.Sprintf("attempt %d running", b.Attempt)+b.next(now, "", ", deadline in "))
	case dag.Failed.String():
		out = append(out, fmt.Sprintf("attempt %d failed", b.Attempt)+b.next(now, ", not tried again until something changes", ", next try in "))
	case dag.Lost.String():
		out = append(out, fmt.Sprintf("attempt %d passed its deadline and has not returned; no second one runs beside it", b.Attempt))
	default:
		out = append(out, b.State)
	}
	if b.Error != "" {
		last := "last error: "
		if b.Reason != "" {
			last += b.Reason + ": "
		}
		out = append(out, last+b.Error)
	}
	return out
}

// next renders Until.
func (b Block) next(now time.Time, never, in string) string {
	switch {
	case b.Until.IsZero():
		return never
	case !b.Until.After(now):
		return in + "0s"
	default:
		return in + short(b.Until.Sub(now))
	}
}

func (b Block) owner(now time.Time) string {
	if b.Owner == nil {
		return ""
	}
	return fmt.Sprintf(", which %s of %s is changing (for %s)", b.Owner.Stage, b.Owner.Pod, ago(now, b.Owner.Since))
}

func (b Block) queued(now time.Time) string {
	if b.Owner != nil {
		return "waits for " + b.Object + b.owner(now)
	}
	text := "in the queue of class " + b.Class
	if b.Position > 0 {
		text = fmt.Sprintf("number %d in the queue of class %s", b.Position, b.Class)
	}
	var holders []string
	for _, w := range b.Holders {
		holders = append(holders, fmt.Sprintf("%s of %s (%s)", w.Stage, w.Pod, ago(now, w.Since)))
	}
	switch {
	case b.Stopped:
		text += ", which starts nothing more: lost are " + few(holders, 4)
	case len(holders) > 0:
		text += fmt.Sprintf(", %d of %d slots taken: %s", len(b.Holders), b.Slots, few(holders, 4))
	}
	return text
}
