package pod_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

func TestPhaseTable(t *testing.T) {
	all := []pod.Phase{pod.Pending, pod.Active, pod.Finishing, pod.Finished, pod.Deleting, pod.Forgotten}
	allowed := map[[2]pod.Phase]bool{
		{pod.Pending, pod.Active}: true, {pod.Pending, pod.Finishing}: true, {pod.Pending, pod.Deleting}: true,
		{pod.Active, pod.Finishing}: true, {pod.Active, pod.Deleting}: true,
		{pod.Finishing, pod.Finished}: true, {pod.Finishing, pod.Deleting}: true,
		{pod.Finished, pod.Deleting}: true, {pod.Deleting, pod.Forgotten}: true,
	}
	for _, from := range all {
		for _, to := range all {
			require.Equal(t, allowed[[2]pod.Phase{from, to}], from.CanFollow(to), "%s to %s", from, to)
		}
	}
}

func TestPhases(t *testing.T) {
	never := newPod(func(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyNever })
	exited := pod.Observed{Began: at(2), Ended: at(3), Containers: []pod.Container{
		{ID: "c", Name: "web", State: pod.Exited, Detailed: true},
	}}
	admitted := pod.Admitted{At: at(1)}
	gone := pod.SpecGone{Source: pod.SourceFile, At: at(4)}
	for name, tc := range map[string]struct {
		changes []pod.Change
		want    pod.Phase
	}{
		"wanted":                             {[]pod.Change{spec(never)}, pod.Pending},
		"admitted":                           {[]pod.Change{spec(never), admitted}, pod.Active},
		"rejected":                           {[]pod.Change{spec(never), pod.Rejected{At: at(1)}}, pod.Finishing},
		"a rejection after the admission":    {[]pod.Change{spec(never), admitted, pod.Rejected{At: at(1)}}, pod.Active},
		"found running: admitted by that":    {[]pod.Change{exited, spec(newPod())}, pod.Active},
		"completed":                          {[]pod.Change{spec(never), admitted, exited}, pod.Finishing},
		"settled":                            {[]pod.Change{spec(never), admitted, exited, pod.Settled{}}, pod.Finished},
		"settled too early":                  {[]pod.Change{spec(never), admitted, pod.Settled{}}, pod.Active},
		"deleted":                            {[]pod.Change{spec(never), admitted, gone}, pod.Deleting},
		"deleted by a source not its own":    {[]pod.Change{spec(never), admitted, pod.SpecGone{Source: pod.SourceAPI}}, pod.Active},
		"a completed one is never made anew": {[]pod.Change{spec(never), admitted, exited, pod.Settled{}, pod.Observed{Began: at(9)}}, pod.Finished},
		"found and claimed":                  {[]pod.Change{exited, pod.Claimed{At: at(4)}}, pod.Deleting},
		"claimed though it has a spec":       {[]pod.Change{spec(never), pod.Claimed{At: at(4)}}, pod.Pending},
		"gone":                               {[]pod.Change{spec(never), gone, pod.Gone{At: at(5)}}, pod.Forgotten},
		"came back while it was ending":      {[]pod.Change{spec(never), gone, spec(newPod()), pod.Gone{At: at(5)}}, pod.Pending},
		"came back and went again":           {[]pod.Change{spec(never), gone, spec(newPod()), gone, pod.Gone{At: at(5)}}, pod.Forgotten},
		"restored as finished":               {[]pod.Change{pod.Restored{Record: pod.Record{UID: "u", Finished: true}}, spec(never)}, pod.Finished},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, fold(nil, tc.changes...).Phase) })
	}
}

func TestAReturnedUIDBeginsAnew(t *testing.T) {
	s := fold(nil, spec(newPod()), pod.Admitted{At: at(1)}, pod.SpecGone{Source: pod.SourceFile, At: at(2)}, spec(newPod()))
	old, version := s.Incarnation, s.Version
	s = fold(s, pod.Gone{At: at(5)})
	require.NotEqual(t, old, s.Incarnation)
	require.Greater(t, s.Version, version)
	require.False(t, s.Admission.Done)
	require.Nil(t, s.Removal)
}

func TestCrashDelay(t *testing.T) {
	var got []time.Duration
	for exits := range 9 {
		got = append(got, pod.Crash{Exits: exits}.Delay(10*time.Second, 300*time.Second)/time.Second)
	}
	require.Equal(t, []time.Duration{0, 0, 10, 20, 40, 80, 160, 300, 300}, got)
	require.Equal(t, 5*time.Second, pod.Crash{Exits: 2}.Delay(10*time.Second, 5*time.Second), "the initial delay is at most the maximum")
}

func TestCrashCount(t *testing.T) {
	run := func(attempt uint32, hash string, from, to float64) pod.Change {
		return pod.Observed{Partial: true, Containers: []pod.Container{{
			ID: string(rune('a' + attempt)), Name: "web", Attempt: attempt, Hash: hash, State: pod.Exited, Detailed: true,
			StartedAt: at(from), Exit: pod.Exit{FinishedAt: at(to)},
		}}}
	}
	for name, tc := range map[string]struct {
		runs []pod.Change
		want int
	}{
		"first exit":                       {[]pod.Change{run(0, "h", 0, 1)}, 1},
		"three in a row":                   {[]pod.Change{run(0, "h", 0, 1), run(1, "h", 2, 3), run(2, "h", 4, 5)}, 3},
		"the same exit told again":         {[]pod.Change{run(0, "h", 0, 1), run(0, "h", 0, 1)}, 1},
		"a long run begins the count anew": {[]pod.Change{run(0, "h", 0, 1), run(1, "h", 2, 700)}, 1},
		"another image begins it anew":     {[]pod.Change{run(0, "h", 0, 1), run(1, "other", 2, 3)}, 1},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, fold(nil, tc.runs...).Crashes["web"].Exits) })
	}
}
