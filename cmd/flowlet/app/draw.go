package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/flowlet/flowlet/internal/config"
	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/explain/picture"
	"github.com/flowlet/flowlet/internal/manifest"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/stages/graph"
)

// DrawManifest draws the graph that a manifest's pod would begin with on an
// empty node, and says what is odd about the manifest. No agent is asked.
func DrawManifest(ctx context.Context, file string, format explain.Format) (drawing string, warnings []string, err error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return "", nil, err
	}
	data, err := os.ReadFile(path) //nolint:gosec // the user names it
	if err != nil {
		return "", nil, fmt.Errorf("reading the manifest: %w", err)
	}
	now := time.Now()
	static, err := manifest.Load(file, data, manifest.Origin{Source: manifest.SourceFile, Location: path, NodeName: "node", Seen: now})
	if err != nil {
		return "", nil, err
	}
	c, err := config.Load(config.NewFlags())
	if err != nil {
		return "", nil, err
	}
	s, _ := pod.Fold(nil, pod.SpecSet{Spec: &pod.Spec{Pod: static.Pod, Source: manifest.SourceFile, Path: path, Seen: now}})
	g := graph.Build(graph.In{Now: now, State: s, World: emptyNode{}, Config: graphConfig(c)}, nil)
	for _, w := range static.Warnings {
		warnings = append(warnings, w.String())
	}
	drawing, err = picture.Draw(ctx, now, explain.FromGraph(g, nil), format)
	return drawing, warnings, err
}

// emptyNode is a node with room where nothing runs.
type emptyNode struct{}

func (emptyNode) Configured(string) bool                      { return true }
func (emptyNode) Synced(string) bool                          { return true }
func (emptyNode) NameHolder(*pod.State) (pod.Key, bool)       { return "", false }
func (emptyNode) NetworkReady() (bool, string)                { return true, "" }
func (emptyNode) Room(*pod.State) (bool, []string)            { return true, nil }
func (emptyNode) Resizable(*pod.State) (bool, string, string) { return true, "", "" }
