package podstore_test

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
)

// static is a view of a static pod as node "n" has it.
func static(uid, namespace, name string) podstore.View {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Namespace: namespace, Name: name + "-n"}, Spec: v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "a", Image: "x"}}}}
	s, _ := pod.Fold(nil, pod.SpecSet{Spec: &pod.Spec{Pod: p, Source: pod.SourceFile, Seen: time.Unix(100, 0)}})
	return view(s)
}

func view(s *pod.State) podstore.View { return podstore.View{Key: pod.KeyOf(s.UID()), State: s} }

// after is v with one more change.
func after(v podstore.View, c pod.Change) podstore.View {
	s, _ := pod.Fold(v.State, c)
	v.State = s
	return v
}

func observed(began int64, sandboxes ...pod.Sandbox) pod.Observed {
	return pod.Observed{Began: time.Unix(began, 0), Ended: time.Unix(began+1, 0), Sandboxes: sandboxes}
}
