package pod_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/pod"
)

func judged(s float64, grace *time.Duration) pod.Judged {
	return pod.Judged{Verdict: pod.Verdict{Reason: "Evicted", Message: "low on memory", At: at(s), Grace: grace}}
}

func TestVerdictEndsAPodForGood(t *testing.T) {
	admitted := pod.Admitted{At: at(1)}
	running := pod.Observed{Began: at(2), Ended: at(2), Containers: []pod.Container{{ID: "c", Name: "web", State: pod.Running, StartedAt: at(2)}}}
	gone := pod.SpecGone{Source: pod.SourceFile, At: at(20)}
	second, hour, negative := time.Second, time.Hour, -time.Second
	for name, tc := range map[string]struct {
		changes []pod.Change
		phase   pod.Phase
		killBy  time.Time
	}{
		"the pod's own grace":          {[]pod.Change{judged(10, nil)}, pod.Finishing, at(40)},
		"a grace of its own":           {[]pod.Change{judged(10, &second)}, pod.Finishing, at(11)},
		"no grace below zero":          {[]pod.Change{judged(10, &negative)}, pod.Finishing, at(10)},
		"the first stands":             {[]pod.Change{judged(10, &second), judged(10, &hour)}, pod.Finishing, at(11)},
		"a sooner end is taken":        {[]pod.Change{judged(10, nil), judged(20, &second)}, pod.Finishing, at(21)},
		"settled":                      {[]pod.Change{judged(10, nil), pod.Settled{}}, pod.Finished, at(40)},
		"too late":                     {[]pod.Change{judged(10, nil), pod.Settled{}, judged(20, &second)}, pod.Finished, at(40)},
		"removed meanwhile":            {[]pod.Change{judged(10, nil), gone}, pod.Deleting, at(40)},
		"removed after its end":        {[]pod.Change{judged(10, &second), gone}, pod.Deleting, at(20)},
		"being removed: a sooner end":  {[]pod.Change{gone, judged(25, &second)}, pod.Deleting, at(26)},
		"being removed: no later end":  {[]pod.Change{gone, judged(25, &hour)}, pod.Deleting, at(50)},
		"removed, so it is not judged": {[]pod.Change{gone, judged(25, nil)}, pod.Deleting, at(50)},
	} {
		t.Run(name, func(t *testing.T) {
			s := fold(nil, append([]pod.Change{spec(newPod()), admitted, running}, tc.changes...)...)
			require.Equal(t, tc.phase, s.Phase)
			require.Equal(t, tc.killBy, s.KillBy())
		})
	}
}

func TestVerdictOutlivesTheAgent(t *testing.T) {
	s := fold(nil, spec(newPod()), pod.Admitted{At: at(1)}, judged(10, nil))
	data, err := json.Marshal(pod.RecordOf(s))
	require.NoError(t, err)
	var r pod.Record
	require.NoError(t, json.Unmarshal(data, &r))

	again := fold(nil, pod.Restored{Record: r}, spec(newPod()))
	require.Equal(t, pod.Finishing, again.Phase)
	require.Equal(t, "low on memory", again.Verdict.Message)
	require.True(t, at(40).Equal(again.KillBy()))
}
