package pod_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

func TestUIDThatComesBackBeforeItsStateIsDroppedBeginsAnew(t *testing.T) {
	gone := fold(nil, spec(newPod()), pod.SpecGone{Source: pod.SourceFile, At: at(1)}, pod.Gone{At: at(2)})
	require.Equal(t, pod.Forgotten, gone.Phase)
	back := spec(newPod())
	back.Spec.Seen = at(3)
	s := fold(gone, back)
	require.Equal(t, pod.Pending, s.Phase)
	require.Same(t, back.Spec, s.Spec)
	require.Nil(t, s.Removal)
	require.NotEqual(t, gone.Incarnation, s.Incarnation)
}

func TestAnEarlierLifeIsNotSeenInALaterOne(t *testing.T) {
	p := newPod(func(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyNever })
	ended := pod.Container{ID: "c", Name: "web", State: pod.Exited, Detailed: true}
	late := pod.Observed{Began: at(1), Ended: at(4), Containers: []pod.Container{ended}}
	s := fold(nil, spec(p), pod.SpecGone{Source: pod.SourceFile, At: at(1)}, spec(p), pod.Gone{At: at(3)}, late)
	require.Equal(t, pod.Pending, s.Phase, "a job of this life did not run yet")
	require.Empty(t, s.Containers)
	own := pod.Observed{Ended: at(5), Partial: true, Containers: []pod.Container{ended}}
	require.Len(t, fold(s, own).Containers, 1, "what a stage learnt has no begin")
}

func TestALookThatFindsNothingMakesNoPodKnown(t *testing.T) {
	s, changed := pod.Fold(nil, pod.Observed{Began: at(1), Identity: pod.Identity{UID: "u"}})
	require.Nil(t, s)
	require.False(t, changed)
}

func TestAVagueExitDoesNotKeepAPodFromBeingRemoved(t *testing.T) {
	vague := pod.Observed{Began: at(1), Ended: at(2), Containers: []pod.Container{{ID: "c", Name: "web", State: pod.Exited}}}
	s := fold(nil, spec(newPod()), vague)
	require.NotEmpty(t, s.Unsure)
	require.Empty(t, fold(s, pod.SpecGone{Source: pod.SourceFile, At: at(3)}).Unsure)
}

func TestExitOfALostContainerSurvivesTheAgent(t *testing.T) {
	p := newPod(func(p *v1.Pod) {
		p.Spec.RestartPolicy = v1.RestartPolicyNever
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: "other", Image: "i"})
	})
	shown := func(began float64, list ...pod.Container) pod.Observed {
		return pod.Observed{Began: at(began), Ended: at(began + 1), Containers: list}
	}
	ended := pod.Container{ID: "c", Name: "web", State: pod.Exited, Detailed: true}
	other := pod.Container{ID: "d", Name: "other", State: pod.Running, Detailed: true}
	s := fold(nil, spec(p), shown(1, ended, other), shown(3, other))
	c, _ := s.Newest("web")
	require.True(t, c.Gone)
	s = fold(nil, pod.Restored{Record: pod.RecordOf(s)}, spec(p), shown(5, other))
	c, ok := s.Newest("web")
	require.True(t, ok, "else it would be run again")
	require.True(t, c.Ended())
	require.True(t, c.Gone)
}
