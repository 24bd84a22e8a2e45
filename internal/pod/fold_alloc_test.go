package pod_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

func TestKnownFactsCostNoAllocation(t *testing.T) {
	at := time.Unix(1000, 0)
	set := pod.Change(pod.SpecSet{Spec: &pod.Spec{Pod: &v1.Pod{}, Source: pod.SourceFile, Seen: at}})
	seen := pod.Change(pod.Observed{
		Began: at, Ended: at,
		Sandboxes:  []pod.Sandbox{{ID: "s", Ready: true, Detailed: true, IPs: []string{"10.0.0.1"}}},
		Containers: []pod.Container{{ID: "a", Name: "a", State: pod.Running, Detailed: true}, {ID: "b", Name: "b", State: pod.Running, Detailed: true}},
	})
	s, _ := pod.Fold(nil, set)
	s, _ = pod.Fold(s, seen)
	for name, c := range map[string]pod.Change{"a spec": set, "a look at the runtime": seen} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if _, changed := pod.Fold(s, c); changed {
				panic("changed")
			}
		}), name)
	}
}
