package app

import (
	"context"
	"hash/fnv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/sources/file"
	"github.com/flowlet/flowlet/sources/http"
	"github.com/flowlet/flowlet/stages"
)

type manifests struct{ *file.Source }

// Manifests gives the manifest source s the shape of the pipeline.
func Manifests(s *file.Source) Source { return manifests{s} }

// Run implements pipeline.Source.
func (m manifests) Run(ctx context.Context, emit func(stages.Event)) error {
	return m.Source.Run(ctx, func(u file.Update) { emit(event(m.Name(), u)) })
}

// served gives the manifest URL the shape of the pipeline.
type served struct{ *http.Source }

// Run implements pipeline.Source.
func (m served) Run(ctx context.Context, emit func(stages.Event)) error {
	return m.Source.Run(ctx, func(u http.Update) {
		emit(event(m.Name(), file.Update{
			Kind: file.Kind(u.Kind), Path: u.Path, UID: u.UID, FullName: u.FullName, Pod: u.Pod, Revision: u.Revision, Seen: u.Seen,
		}))
	})
}

// event says what a source of static pods tells. Both kinds of sources count
// their kinds of updates alike.
func event(source string, u file.Update) stages.Event {
	ev := stages.Event{Key: pod.KeyOf(u.UID), Source: source, Seen: u.Seen}
	switch u.Kind {
	case file.Synced:
		ev.Topic = pipeline.Synced(source)
	case file.Gone:
		ev.Change = pod.SpecGone{Source: source, At: u.Seen}
	case file.Set:
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
