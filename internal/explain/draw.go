package explain

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/flowlet/flowlet/dag"
)

// Format is how a graph is drawn.
type Format string

// The formats of Draw.
const (
	Text    Format = "text"
	Mermaid Format = "mermaid"
	Dot     Format = "dot"
	JSON    Format = "json"
)

// GraphSchema names the JSON form of a drawing.
const GraphSchema = "flowlet.dev/dag/v1"

// Graph is the JSON form of a drawing.
type Graph struct {
	Schema string    `json:"schema"`
	At     time.Time `json:"at"`
	Stages []Stage   `json:"stages"` // each after those it needs
}

// Draw renders a graph with the state and age of its stages. The only error is
// a format that does not exist.
func Draw(now time.Time, stages []Stage, f Format) (string, error) {
	switch f {
	case Text, "":
		return drawText(now, stages), nil
	case Mermaid:
		return drawMermaid(now, stages), nil
	case Dot:
		return drawDot(now, stages), nil
	case JSON:
		out, err := json.MarshalIndent(Graph{Schema: GraphSchema, At: now, Stages: stages}, "", "  ")
		if err != nil {
			return "", fmt.Errorf("writing the graph as JSON: %w", err)
		}
		return string(out) + "\n", nil
	default:
		return "", fmt.Errorf("format %q: want text, mermaid, dot, svg or json", f)
	}
}

// signs are one character per state, for text.
func sign(s Stage) string {
	switch {
	case s.State == StateNew && s.Do == "":
		return " "
	case s.State == StateNew:
		return "+"
	case s.is(dag.Done):
		return "✓"
	case s.is(dag.Failed), s.is(dag.Lost):
		return "✗"
	case s.is(dag.Running):
		return "▶"
	default:
		return "·"
	}
}

// drawText lists the stages in graph order with what each one needs.
func drawText(now time.Time, stages []Stage) string {
	idWidth := 12
	for _, s := range stages {
		idWidth = min(max(idWidth, len(s.ID)), 30)
	}
	var b strings.Builder
	for _, s := range stages {
		line := fmt.Sprintf("%s %s %s", sign(s), pad(clip(s.ID, idWidth), idWidth), pad(Age(now, s), 15))
		edges := edgeText(s)
		if room := width - len([]rune(line)) - 1; len([]rune(edges)) > room && len(s.Need) > 1 {
			edges = fmt.Sprintf("← %s", few(s.Need, 1))
		}
		b.WriteString(strings.TrimRight(clip(line+" "+edges, width), " ") + "\n")
		if detail := Detail(now, s); detail != "" {
			b.WriteString(clip("    "+detail, width) + "\n")
		}
	}
	return b.String()
}

// Age renders a stage's state and how long it has been so; empty for a stage that nothing is remembered of.
func Age(now time.Time, s Stage) string {
	if s.State == StateNew {
		return ""
	}
	return s.State + " " + ago(now, s.Since)
}

func edgeText(s Stage) string {
	var parts []string
	if len(s.Need) > 0 {
		parts = append(parts, "← "+strings.Join(s.Need, ", "))
	}
	if len(s.After) > 0 {
		parts = append(parts, "after "+strings.Join(s.After, ", "))
	}
	return strings.Join(parts, "; ")
}

// Detail says, for a stage that is not done, what it does or waits for.
func Detail(now time.Time, s Stage) string {
	switch {
	case s.is(dag.Done), s.Left && s.Do == "":
		return ""
	case s.is(dag.Failed) && s.Error != "":
		return fmt.Sprintf("attempt %d: %s", s.Attempt, s.Error)
	case s.is(dag.Held):
		if !s.Until.IsZero() {
			return "held: " + s.Why + ", ends in " + short(max(0, s.Until.Sub(now)))
		}
		return "held: " + s.Why
	case s.Left:
		return s.Do + " (no longer wanted)"
	default:
		return s.Do
	}
}

// drawMermaid makes a flowchart: solid arrows are needs, dotted ones order only.
func drawMermaid(now time.Time, stages []Stage) string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	node := numbers(stages)
	for _, s := range stages {
		fmt.Fprintf(&b, "  %s[\"%s\"]:::%s\n", node[s.ID], mermaidLabel(now, s), s.State)
	}
	for _, s := range stages {
		for _, n := range s.Need {
			fmt.Fprintf(&b, "  %s --> %s\n", node[n], node[s.ID])
		}
		for _, n := range s.After {
			fmt.Fprintf(&b, "  %s -.-> %s\n", node[n], node[s.ID])
		}
	}
	for _, c := range colours {
		fmt.Fprintf(&b, "  classDef %s fill:%s,stroke:#555,color:#111\n", c.state, c.fill)
	}
	return b.String()
}

func mermaidLabel(now time.Time, s Stage) string {
	label := escape(s.ID)
	if age := Age(now, s); age != "" {
		label += "<br/>" + age
	}
	return label
}

// escape makes text harmless inside a quoted label.
func escape(text string) string {
	return strings.NewReplacer(`"`, "#quot;", "<", "#lt;", ">", "#gt;").Replace(text)
}

func drawDot(now time.Time, stages []Stage) string {
	var b strings.Builder
	b.WriteString("digraph pod {\n  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n")
	node := numbers(stages)
	for _, s := range stages {
		label := s.ID
		if age := Age(now, s); age != "" {
			label += "\n" + age
		}
		fmt.Fprintf(&b, "  %s [label=%q, fillcolor=\"%s\"];\n", node[s.ID], label, fill(s.State))
	}
	for _, s := range stages {
		for _, n := range s.Need {
			fmt.Fprintf(&b, "  %s -> %s;\n", node[n], node[s.ID])
		}
		for _, n := range s.After {
			fmt.Fprintf(&b, "  %s -> %s [style=dashed];\n", node[n], node[s.ID])
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// numbers gives each stage a name that every drawing language accepts.
func numbers(stages []Stage) map[string]string {
	out := make(map[string]string, len(stages))
	for i, s := range stages {
		out[s.ID] = fmt.Sprintf("s%d", i)
	}
	return out
}

var colours = [...]struct{ state, fill string }{
	{StateNew, "#ffffff"},
	{dag.Waiting.String(), "#eeeeee"},
	{dag.Held.String(), "#ffe9b3"},
	{dag.Queued.String(), "#d7e3ff"},
	{dag.Running.String(), "#9ec5ff"},
	{dag.Failed.String(), "#ffb3a7"},
	{dag.Lost.String(), "#d98cff"},
	{dag.Done.String(), "#bfe8c0"},
}

func fill(state string) string {
	for _, c := range colours {
		if c.state == state {
			return c.fill
		}
	}
	return "#ffffff"
}
