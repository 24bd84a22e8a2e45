package app

import (
	"context"
	"hash/fnv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/manifest"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/stages"
)

// StaticPods is a source of manifests: a directory, or a URL.
type StaticPods interface {
	Name() string
	Run(ctx context.Context, emit func(manifest.Update)) error
}

type manifests struct{ StaticPods }

// Manifests gives a source of manifests the shape of the pipeline.
func Manifests(s StaticPods) Source { return manifests{s} }

// Run implements pipeline.Source.
func (m manifests) Run(ctx context.Context, emit func(stages.Event)) error {
	return m.StaticPods.Run(ctx, func(u manifest.Update) { emit(event(m.Name(), u)) })
}

func event(source string, u manifest.Update) stages.Event {
	ev := stages.Event{Key: pod.KeyOf(u.UID), Source: source, Seen: u.Seen}
	switch u.Kind {
	case manifest.Synced:
		ev.Topic = pipeline.Synced(source)
	case manifest.Gone:
		ev.Change = pod.SpecGone{Source: source, At: u.Seen}
	case manifest.Set:
		ev.Change = pod.SpecSet{Spec: &pod.Spec{Pod: u.Pod, Source: source, Path: u.Path, Seen: u.Seen, Sum: sum(u.Revision)}}
	}
	return ev
}

func sum(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}

// Runs reports whether a pod of that UID is on this node already: the runtime
// has something of it or, as state files tell before the first look at the
// runtime, it was admitted. It is for sources, and may be called concurrently.
func (a *Agent) Runs(uid types.UID) bool {
	s, ok := a.pipeline.State(pod.KeyOf(uid))
	return ok && (s.HasRemains() || (s.Admission.OK && s.Removal == nil))
}
