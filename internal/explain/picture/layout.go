package picture

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/dop251/goja"
)

// Sizes in pixels.
const (
	boxWidth  = 188
	boxHeight = 46
	margin    = 12
)

type point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// line is an edge between two stages. After: order only.
type line struct {
	From  string `json:"from"`
	To    string `json:"to"`
	After bool   `json:"after"`
}

// layout is where everything goes: the middles of the boxes, and the points
// that the lines pass.
type layout struct {
	Width  float64          `json:"width"`
	Height float64          `json:"height"`
	Boxes  map[string]point `json:"boxes"`
	Lines  [][]point        `json:"lines"` // in the order of the edges
}

//go:embed dagre/dagre.min.js
var dagre string

// arrange is the use that is made of dagre. Lines of equal ends are told apart by their number. The interpreter has
// no structuredClone, with which dagre copies plain data.
const arrange = `(function (boxes, lines, size) {
	globalThis.structuredClone = (v) => JSON.parse(JSON.stringify(v));
	const g = new dagre.graphlib.Graph({ multigraph: true });
	g.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 44, edgesep: 8, marginx: size.margin, marginy: size.margin });
	boxes.forEach((b) => g.setNode(b, { width: size.width, height: size.height }));
	lines.forEach((l, i) => g.setEdge(l.from, l.to, { weight: l.after ? 1 : 2 }, String(i)));
	dagre.layout(g);
	const at = {};
	boxes.forEach((b) => { const n = g.node(b); at[b] = { x: n.x, y: n.y }; });
	const paths = lines.map((l, i) => g.edge(l.from, l.to, String(i)).points.map((p) => ({ x: p.x, y: p.y })));
	return JSON.stringify({ width: g.graph().width, height: g.graph().height, boxes: at, lines: paths });
})`

var compiled = sync.OnceValues(func() (*goja.Program, error) { return goja.Compile("dagre.min.js", dagre, false) })

// place computes a layout. It takes some hundredths of a second of processor
// time, more for large graphs, and gives up when ctx ends.
func place(ctx context.Context, boxes []string, lines []line) (*layout, error) {
	program, err := compiled()
	if err != nil {
		return nil, fmt.Errorf("arranging the graph: %w", err)
	}
	vm := goja.New()
	stop := context.AfterFunc(ctx, func() { vm.Interrupt(context.Cause(ctx)) })
	defer stop()
	out, err := run(vm, program, boxes, lines)
	if err != nil {
		return nil, fmt.Errorf("arranging the graph: %w", err)
	}
	l := &layout{}
	if err := json.Unmarshal([]byte(out), l); err != nil {
		return nil, fmt.Errorf("arranging the graph: %w", err)
	}
	return l, nil
}

func run(vm *goja.Runtime, program *goja.Program, boxes []string, lines []line) (string, error) {
	vm.SetFieldNameMapper(goja.TagFieldNameMapper("json", true))
	if _, err := vm.RunProgram(program); err != nil {
		return "", err
	}
	v, err := vm.RunString(arrange)
	if err != nil {
		return "", err
	}
	call, ok := goja.AssertFunction(v)
	if !ok {
		return "", errors.New("no function")
	}
	size := map[string]int{"width": boxWidth, "height": boxHeight, "margin": margin}
	out, err := call(goja.Undefined(), vm.ToValue(boxes), vm.ToValue(lines), vm.ToValue(size))
	if err != nil {
		return "", err
	}
	return out.String(), nil
}
