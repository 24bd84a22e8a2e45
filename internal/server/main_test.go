package server_test

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
	"github.com/flowlet/flowlet/internal/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// agent shows one static pod, whose image is being pulled, and one that was
// found and belongs to the API server.
func agent() *server.Agent {
	store := podstore.New()
	store.Put(wanted())
	found, _ := pod.Fold(nil, pod.Observed{
		Began: start, Ended: start, Identity: pod.Identity{Name: "other", Namespace: "kube-system", UID: "u9", Source: pod.SourceAPI},
		Sandboxes: []pod.Sandbox{{ID: "s9", Ready: true}},
	})
	store.Put(podstore.View{Key: "u9", State: found})
	return &server.Agent{
		Store: store, Sources: []string{pod.SourceFile},
		Queues: func() []dag.Queue[pod.Key] {
			return []dag.Queue[pod.Key]{
				{Class: "image", Row: dag.Class{Slots: 1, Deadline: time.Hour}, Running: []dag.InFlight[pod.Key]{{Ref: pulling(), Since: start}}},
				{Class: "mount"},
			}
		},
		Graph: func(time.Time, *pod.State) *dag.Graph[pod.Facts] {
			g := &dag.Graph[pod.Facts]{}
			g.Add(dag.Node[pod.Facts]{ID: dag.ID{Kind: "image", Of: "x"}, Key: dag.Key{Do: "pull", In: 1}, Class: "image"})
			return g
		},
		Memo: func(pod.Key) dag.Memo { return nil },
		Events: func(uid types.UID) []pod.Event {
			return []pod.Event{{Type: v1.EventTypeNormal, Reason: "Pulling", Message: "of " + string(uid), Count: 1, First: start, Last: start}}
		},
		Episodes: func(k pod.Key) []journal.Episode {
			return []journal.Episode{{Key: k, Kind: journal.Start, Began: start, Events: []journal.Event{{At: start, Source: "file", Change: "wanted"}}}}
		},
		Files: func() []server.File { return []server.File{{Path: "/m/a.yaml", Error: "/m/a.yaml:3: bad"}} },
		Node: func() server.Node {
			return server.Node{Schema: server.NodeSchema, Name: "n", Checks: []server.Check{{Name: "ping"}}}
		},
		Unsupported: func(*v1.Pod) []string { return []string{"spec.hostUsers"} },
		Plan: func(path string, data []byte) (explain.Plans, error) {
			switch {
			case data == nil:
				return explain.Plans{Notes: []string{"removed " + path}}, nil
			case len(data) == 0:
				return explain.Plans{}, errors.New(path + ": file is empty")
			}
			return explain.Plans{Notes: []string{path + " " + string(data)}}, nil
		},
	}
}

func pulling() dag.Ref[pod.Key] {
	return dag.Ref[pod.Key]{Key: "u1", ID: dag.ID{Kind: "image", Of: "x"}}
}

func wanted() podstore.View {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: "u1", Namespace: "default", Name: "web-n"},
		Spec:       v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "a", Image: "x"}}},
	}
	s, _ := pod.Fold(nil, pod.SpecSet{Spec: &pod.Spec{Pod: p, Source: pod.SourceFile, Path: "/m/web.yaml", Seen: start}})
	return podstore.View{
		Key: "u1", State: s, Status: &v1.PodStatus{Phase: v1.PodPending},
		Memo: dag.Memo{pulling().ID: {Key: dag.Key{Do: "pull", In: 1}, State: dag.Running, Since: start, Attempt: 1, Class: "image"}},
	}
}
