package picture

import (
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/explain"
)

// SVG is the format that this package adds to those of package explain.
const SVG explain.Format = "svg"

// Style is the style sheet of the pictures, for light and dark. A picture that
// is a file of its own carries it.
//
//go:embed graph.css
var Style string

//go:embed graph.svg.tmpl
var source string

var tmpl = template.Must(template.New("graph").Parse(source))

// Draw renders a graph in a format of explain.Draw or as SVG, the latter as a
// document of its own.
func Draw(ctx context.Context, now time.Time, stages []explain.Stage, f explain.Format) (string, error) {
	if f != SVG {
		return explain.Draw(now, stages, f)
	}
	var a Artist
	return a.draw(ctx, now, stages, scene{Style: template.CSS(Style)}) //nolint:gosec // it is our own
}

// Artist draws graphs again and again, and remembers where the stages of
// those it drew last are. The zero value is ready. It is safe for concurrent use.
type Artist struct {
	mu    sync.Mutex
	known []arranged // newest last
}

type arranged struct {
	shape  string
	layout *layout
}

// remembered is how many layouts an Artist keeps.
const remembered = 32

// Graph renders a graph as an SVG element without a style sheet, for a page
// that has Style. link is where a click on a stage leads.
func (a *Artist) Graph(ctx context.Context, now time.Time, stages []explain.Stage, link func(id string) string) (template.HTML, error) {
	out, err := a.draw(ctx, now, stages, scene{link: link})
	return template.HTML(out), err //nolint:gosec // made by the template
}

// scene is what the template draws.
type scene struct {
	Style         template.CSS
	Width, Height int
	Boxes         []box
	Lines         []curve

	link func(id string) string
}

type box struct {
	X, Y  int
	Class string
	Link  string
	Name  string
	Age   string
	State string
	Since int64 // milliseconds since 1970, for a page that counts on; 0: not known
	Title string
}

type curve struct {
	Class string
	Path  string
}

func (a *Artist) draw(ctx context.Context, now time.Time, stages []explain.Stage, s scene) (string, error) {
	shown := Shown(stages)
	visible := slices.DeleteFunc(slices.Clone(stages), func(st explain.Stage) bool { return !shown[st.ID] })
	lines := sparse(stages, shown)
	l, err := a.layout(ctx, visible, lines)
	if err != nil {
		return "", err
	}
	s.Width, s.Height = max(int(l.Width), boxWidth), max(int(l.Height), boxHeight)
	for _, st := range visible {
		s.Boxes = append(s.Boxes, s.box(now, st, l.Boxes[st.ID]))
	}
	for i, ln := range lines {
		class := "need"
		if ln.After {
			class = "after"
		}
		s.Lines = append(s.Lines, curve{Class: class, Path: link(l.Boxes[ln.From], l.Boxes[ln.To], l.Lines[i])})
	}
	var b strings.Builder
	if err := tmpl.Execute(&b, s); err != nil {
		return "", fmt.Errorf("drawing the graph: %w", err)
	}
	return b.String(), nil
}

// layout computes one layout at a time, so that many readers cost no more than one.
func (a *Artist) layout(ctx context.Context, stages []explain.Stage, lines []line) (*layout, error) {
	ids := make([]string, len(stages))
	for i, s := range stages {
		ids[i] = s.ID
	}
	shape := fmt.Sprintf("%q %v", ids, lines)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, k := range a.known {
		if k.shape == shape {
			return k.layout, nil
		}
	}
	l, err := place(ctx, ids, lines)
	if err != nil {
		return nil, err
	}
	a.known = append(a.known, arranged{shape, l})
	if len(a.known) > remembered {
		a.known = slices.Delete(a.known, 0, 1)
	}
	return l, nil
}

func (s *scene) box(now time.Time, st explain.Stage, at point) box {
	b := box{
		X: int(at.X) - boxWidth/2, Y: int(at.Y) - boxHeight/2, Class: Class(st), Name: name(st),
		Age: explain.Age(now, st), Title: st.ID,
	}
	if b.Age == "" {
		b.Age = "to do"
	}
	if s.link != nil && !st.Since.IsZero() {
		b.State, b.Since = st.State, st.Since.UnixMilli()
	}
	if detail := explain.Detail(now, st); detail != "" {
		b.Title += "\n" + detail
	}
	if s.link != nil {
		b.Link = s.link(st.ID)
	}
	return b
}

// Class is the style class of a stage's state.
func Class(s explain.Stage) string {
	switch {
	case idle(s):
		return "idle"
	case s.State == dag.Held.String() && s.OnTime:
		return "due"
	}
	return s.State
}

// nameLength is how many characters fit into a box.
const nameLength = 21

// name shortens an ID that does not fit at the front of what it is about: the
// end of an image's name says more than its beginning.
func name(s explain.Stage) string {
	id, of := []rune(s.ID), []rune(s.Of)
	over := len(id) - nameLength
	if over <= 0 {
		return s.ID
	}
	if over+1 < len(of) {
		return s.Kind + "[…" + string(of[over+1:]) + "]"
	}
	return string(id[:nameLength-1]) + "…"
}

// link makes a curve from the right side of one box to the left side of
// another, level where it begins and ends and at the points that a long line
// passes on its way round other boxes.
func link(from, to point, via []point) string {
	at := point{from.X + boxWidth/2, from.Y}
	way := []point{{to.X - boxWidth/2, to.Y}}
	if len(via) > 3 { // of three, the middle one is only half way
		way = append(slices.Clone(via[1:len(via)-1]), way...)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "M%.0f %.0f", at.X, at.Y)
	for _, p := range way {
		half := (at.X + p.X) / 2
		fmt.Fprintf(&b, "C%.0f %.0f %.0f %.0f %.0f %.0f", half, at.Y, half, p.Y, p.X, p.Y)
		at = p
	}
	return b.String()
}
