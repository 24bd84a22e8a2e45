package stages_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/stages"
	"github.com/flowlet/flowlet/stages/admit"
	"github.com/flowlet/flowlet/stages/graph"
)

type noEvents struct{}

func (noEvents) Event(*v1.Pod, string, string, string, string) {}

// The state that a step is given may be from before its source told all it
// knows. A pod is not taken down because of that.
func TestStepSeesWhatCameBeforeSynced(t *testing.T) {
	d, p, _ := stages.New(stages.Config{
		Graph: &graph.Config{RuntimeSource: "runtime"}, Store: podstore.New(), Sources: []string{pod.SourceFile},
		Ledger: admit.NewLedger(admit.Config{NodeName: "n"}), Runtime: func() string { return "sim" }, Recorder: noEvents{}, Policy: dag.Policy{"": {Slots: 1}},
	}, pipeline.Options{})
	k := pod.Key("u1")
	id := pod.Identity{UID: "u1", Name: "web", Namespace: "default", Source: pod.SourceFile}
	sandbox := pod.Sandbox{ID: "s", Ready: true}
	p.Emit(stages.Event{Key: k, Change: pod.Observed{Identity: id, Sandboxes: []pod.Sandbox{sandbox}, Began: time.Now(), Ended: time.Now()}})
	stale, ok := p.State(k)
	require.True(t, ok)

	spec := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u1", Name: "web", Namespace: "default"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}}
	p.Emit(stages.Event{Key: k, Change: pod.SpecSet{Spec: &pod.Spec{Pod: spec, Source: pod.SourceFile, Seen: time.Now()}}})
	for _, source := range []string{"runtime", pod.SourceFile} {
		p.Emit(stages.Event{Topic: pipeline.Synced(source)})
	}
	claim := dag.ID{Kind: graph.KindClaim}
	_, has := d.Look(time.Now(), stale).Node(claim)
	require.True(t, has, "such a state would be claimed")
	d.Step(k, stale, 0)
	v, ok := d.Store.Get(k)
	require.True(t, ok)
	require.NotContains(t, v.Memo, claim)
	require.NotNil(t, v.State.Spec)
}
