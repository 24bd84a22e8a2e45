package app

import (
	"context"
	"hash/fnv"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/sources/file"
	"github.com/flowlet/flowlet/stages"
)

type manifests struct{ *file.Source }

// Manifests gives the manifest source s the shape of the pipeline.
func Manifests(s *file.Source) Source { return manifests{s} }

// Run implements pipeline.Source.
func (m manifests) Run(ctx context.Context, emit func(stages.Event)) error {
	return m.Source.Run(ctx, func(u file.Update) { emit(m.event(u)) })
}

func (m manifests) event(u file.Update) stages.Event {
	ev := stages.Event{Key: pod.KeyOf(u.UID), Source: m.Name(), Seen: u.Seen}
	switch u.Kind {
	case file.Synced:
		ev.Topic = pipeline.Synced(m.Name())
	case file.Gone:
		ev.Change = pod.SpecGone{Source: m.Name(), At: u.Seen}
	case file.Set:
		ev.Change = pod.SpecSet{Spec: &pod.Spec{Pod: u.Pod, Source: m.Name(), Path: u.Path, Seen: u.Seen, Sum: sum(u.Revision)}}
	}
	return ev
}

func sum(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}

// Runs reports whether a pod of that UID is on this node already: the runtime
// has something of it, or, before the first look at the runtime, a state file
// says that it was admitted. It may be called concurrently.
func (a *Agent) Runs(uid types.UID) bool {
	if v, ok := a.Store.Get(pod.KeyOf(uid)); ok {
		return v.State.HasRemains() || (v.State.Admission.OK && v.State.Removal == nil)
	}
	return slices.ContainsFunc(a.restored, func(r pod.Record) bool {
		return r.UID == uid && r.Admission != nil && r.Admission.OK && r.Removal == nil
	})
}
