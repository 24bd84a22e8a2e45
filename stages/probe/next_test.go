package probe_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/stages/probe"
)

func TestWhenChecksAreMade(t *testing.T) {
	slowStart := func(k probe.Kind, now time.Time) probe.Outcome {
		if k == probe.Startup && now.Before(at(7)) {
			return probe.Failure
		}
		return probe.Success
	}
	patient := every(2)
	patient.FailureThreshold = 30
	delayed := func(period, delay int32) *v1.Probe {
		p := every(period)
		p.InitialDelaySeconds = delay
		return p
	}
	for name, tc := range map[string]struct {
		c      v1.Container
		change func(*sim)
		answer func(probe.Kind, time.Time) probe.Outcome
		end    float64
		want   []string
	}{
		"first at the initial delay exactly": {
			c: v1.Container{ReadinessProbe: delayed(600, 15)}, end: 700, want: []string{"15s readiness c1", "10m15s readiness c1"},
		},
		"no delay: with the start": {
			c: v1.Container{LivenessProbe: every(10)}, end: 25, want: []string{"0s liveness c1", "10s liveness c1", "20s liveness c1"},
		},
		"defaults of a bare probe": {
			c: v1.Container{LivenessProbe: &v1.Probe{}}, end: 10, want: []string{"0s liveness c1", "10s liveness c1"},
		},
		"startup comes first": {
			c: v1.Container{StartupProbe: patient, LivenessProbe: every(10), ReadinessProbe: delayed(10, 12)}, answer: slowStart, end: 18,
			want: []string{
				"0s startup c1", "2s startup c1", "4s startup c1", "6s startup c1", "8s startup c1",
				"8s liveness c1", "12s readiness c1", "18s liveness c1",
			},
		},
		"a slow check makes no drift": {
			c: v1.Container{LivenessProbe: every(10)}, change: func(s *sim) { s.took = 4 * time.Second }, end: 20,
			want: []string{"0s liveness c1", "10s liveness c1", "20s liveness c1"},
		},
		"what was missed is not made up": {
			c: v1.Container{LivenessProbe: every(10)}, change: func(s *sim) { s.took = 25 * time.Second }, end: 60,
			want: []string{"0s liveness c1", "30s liveness c1", "1m0s liveness c1"},
		},
		"after a failure of liveness: none": {
			c: v1.Container{LivenessProbe: every(10)}, answer: always(probe.Failure), end: 60, want: []string{"0s liveness c1"},
		},
		"after a failure of startup: none": {
			c: v1.Container{StartupProbe: every(10), LivenessProbe: every(10)}, answer: always(probe.Failure), end: 60, want: []string{"0s startup c1"},
		},
		"after a failure of readiness they go on": {
			c: v1.Container{ReadinessProbe: every(10)}, answer: always(probe.Failure), end: 10, want: []string{"0s readiness c1", "10s readiness c1"},
		},
		"errors go on, too": {
			c: v1.Container{LivenessProbe: every(10)}, answer: always(probe.Errored), end: 10, want: []string{"0s liveness c1", "10s liveness c1"},
		},
		"not before it runs": {
			c: v1.Container{LivenessProbe: every(10)}, change: func(s *sim) { s.running = false }, end: 60,
		},
		"none": {end: 60},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.answer == nil {
				tc.answer = always(probe.Success)
			}
			s := newSim(tc.c, tc.answer)
			if tc.change != nil {
				tc.change(s)
			}
			s.until(at(tc.end))
			require.Equal(t, tc.want, s.calls)
		})
	}
}

func TestThresholds(t *testing.T) {
	const ok, bad, err, warn = probe.Success, probe.Failure, probe.Errored, probe.Warning
	for name, tc := range map[string]struct {
		kind             probe.Kind
		success, failure int32
		results          []probe.Outcome
		want             probe.Verdict
		hold             bool
	}{
		"nothing yet":                         {probe.Readiness, 1, 3, nil, probe.Unknown, false},
		"one success":                         {probe.Readiness, 1, 3, []probe.Outcome{ok}, probe.Passed, false},
		"one of two":                          {probe.Readiness, 2, 3, []probe.Outcome{ok}, probe.Unknown, false},
		"two of two":                          {probe.Readiness, 2, 3, []probe.Outcome{ok, ok}, probe.Passed, false},
		"two, not in a row":                   {probe.Readiness, 2, 3, []probe.Outcome{ok, bad, ok}, probe.Unknown, false},
		"a warning is a success":              {probe.Readiness, 2, 3, []probe.Outcome{ok, warn}, probe.Passed, false},
		"two failures of three":               {probe.Readiness, 1, 3, []probe.Outcome{ok, bad, bad}, probe.Passed, false},
		"three failures":                      {probe.Readiness, 1, 3, []probe.Outcome{ok, bad, bad, bad}, probe.Failed, false},
		"and back":                            {probe.Readiness, 1, 2, []probe.Outcome{bad, bad, ok}, probe.Passed, false},
		"errors count neither way":            {probe.Readiness, 1, 3, []probe.Outcome{bad, err, bad, err, err}, probe.Unknown, false},
		"errors do not break a row":           {probe.Readiness, 1, 3, []probe.Outcome{bad, bad, err, bad}, probe.Failed, false},
		"defaults":                            {probe.Readiness, 0, 0, []probe.Outcome{bad, bad, bad}, probe.Failed, false},
		"liveness lives":                      {probe.Liveness, 1, 2, []probe.Outcome{ok, bad, ok}, probe.Passed, false},
		"liveness fails, and that is it":      {probe.Liveness, 1, 2, []probe.Outcome{bad, bad, ok, ok}, probe.Failed, true},
		"startup passes, and that is it":      {probe.Startup, 1, 2, []probe.Outcome{bad, ok, bad, bad}, probe.Passed, true},
		"startup fails, and that is it":       {probe.Startup, 1, 2, []probe.Outcome{bad, bad, ok}, probe.Failed, true},
		"a check that was given up is nobody": {probe.Liveness, 1, 1, []probe.Outcome{probe.None}, probe.Unknown, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := probe.In{
				Kind: tc.kind, ID: "c1", StartedAt: epoch, Started: epoch, Running: true,
				Probe: &v1.Probe{PeriodSeconds: 1, SuccessThreshold: tc.success, FailureThreshold: tc.failure},
			}
			var s probe.State
			for i, o := range tc.results {
				s = probe.Next(s, in, probe.Result{ID: "c1", Outcome: o}, at(float64(i)))
				require.Equal(t, s.Hold, s.Due.IsZero(), "due, unless it is over")
			}
			require.Equal(t, tc.want, s.Verdict)
			require.Equal(t, tc.hold, s.Hold)
			require.Equal(t, tc.hold, probe.Next(s, in, probe.Result{}, at(100)).Due.IsZero())
		})
	}
}

func TestResultsOfAnotherContainerAreNone(t *testing.T) {
	s := newSim(v1.Container{LivenessProbe: every(10)}, nil)
	s.look(epoch)
	got := probe.Next(s.of(probe.Liveness), s.in(probe.Liveness), probe.Result{ID: "c0", Outcome: probe.Failure}, at(1))
	require.Equal(t, s.of(probe.Liveness), got)
}

// BC-32, and a count that must not be carried over.
func TestANewContainerBeginsAnew(t *testing.T) {
	failing := false
	s := newSim(v1.Container{StartupProbe: every(1), LivenessProbe: &v1.Probe{PeriodSeconds: 2, FailureThreshold: 2}},
		func(k probe.Kind, _ time.Time) probe.Outcome {
			if failing && k == probe.Liveness {
				return probe.Failure
			}
			return probe.Success
		})
	s.until(at(3))
	started, _, why := s.verdicts()
	require.True(t, started)
	require.Empty(t, why)
	failing = true
	s.until(at(20))
	_, _, why = s.verdicts()
	require.Equal(t, "Container web failed liveness probe", why)
	require.Equal(t, []string{"0s startup c1", "0s liveness c1", "2s liveness c1", "4s liveness c1", "6s liveness c1"}, s.calls)

	s.calls, s.id, s.start = nil, "c2", at(20)
	started, ready, why := s.verdicts()
	require.False(t, started, "before its first step, too")
	require.False(t, ready)
	require.Empty(t, why)
	s.until(at(20))
	require.Equal(t, []string{"20s startup c2", "20s liveness c2"}, s.calls)
	require.EqualValues(t, 1, s.of(probe.Liveness).Count)
	_, _, why = s.verdicts()
	require.Empty(t, why)
}

// BC-11: the record is restored, and nothing changes without a result.
func TestReadyDoesNotFlapOverARestart(t *testing.T) {
	s := newSim(v1.Container{ReadinessProbe: every(10)}, always(probe.Success))
	s.until(at(12))
	restart(t, s, at(100))
	_, ready, _ := s.verdicts()
	require.True(t, ready)
	require.False(t, s.of(probe.Readiness).Due.Before(at(100)))
	require.True(t, s.of(probe.Readiness).Due.Before(at(110)), "within a period")
	s.until(at(200))
	_, ready, _ = s.verdicts()
	require.True(t, ready)
	s.answer = always(probe.Failure)
	s.until(at(230))
	_, ready, _ = s.verdicts()
	require.False(t, ready, "by a result")
}

// restart writes the states down, loses them and reads them again.
func restart(t *testing.T, s *sim, now time.Time) {
	t.Helper()
	record, err := json.Marshal(s.states)
	require.NoError(t, err)
	s.states, s.calls = nil, nil
	require.NoError(t, json.Unmarshal(record, &s.states))
	s.spread = now
	s.look(now)
}

// BC-13: still starting up when the agent restarts.
func TestARestartDuringStartUp(t *testing.T) {
	startup := every(10)
	startup.FailureThreshold = 1000
	s := newSim(v1.Container{StartupProbe: startup, LivenessProbe: every(10)}, always(probe.Failure))
	s.until(at(50))
	restart(t, s, at(100))
	s.until(at(200))
	require.NotEmpty(t, s.calls)
	for _, call := range s.calls {
		require.Contains(t, call, "startup")
	}
	started, ready, why := s.verdicts()
	require.False(t, started)
	require.False(t, ready)
	require.Empty(t, why)
	require.Greater(t, s.of(probe.Startup).Count, int32(10), "it counts on")
}

// BC-31: only readiness is checked while the pod is being taken down.
func TestWhileThePodEnds(t *testing.T) {
	s := newSim(v1.Container{LivenessProbe: every(2), ReadinessProbe: every(2)}, always(probe.Success))
	s.until(at(5))
	s.calls, s.ending, s.answer = nil, true, always(probe.Failure)
	s.check(probe.Liveness, at(5)) // it was under way
	s.until(at(10))
	require.Equal(t, []string{"5s liveness c1", "6s readiness c1", "8s readiness c1", "10s readiness c1"}, s.calls)
	_, ready, why := s.verdicts()
	require.False(t, ready)
	require.Empty(t, why, "and no restart")
	s.running = false
	s.until(at(60))
	require.Len(t, s.calls, 4, "until its end")
}

func TestEarlyReadiness(t *testing.T) {
	answer := probe.Failure
	s := newSim(v1.Container{ReadinessProbe: every(60)}, func(probe.Kind, time.Time) probe.Outcome { return answer })
	s.until(at(10))
	answer = probe.Success
	s.early = at(17)
	s.until(at(100))
	require.Equal(t, []string{"0s readiness c1", "17s readiness c1", "1m17s readiness c1"}, s.calls, "once, and a period from then")
	s.early = at(101)
	s.until(at(110))
	require.Len(t, s.calls, 3, "not for one that is ready")

	s = newSim(v1.Container{ReadinessProbe: &v1.Probe{InitialDelaySeconds: 20}}, always(probe.Success))
	s.early = at(5)
	s.until(at(20))
	require.Equal(t, []string{"20s readiness c1"}, s.calls, "never before the initial delay")
}

func TestSpread(t *testing.T) {
	s := newSim(v1.Container{LivenessProbe: every(10)}, always(probe.Success))
	s.spread = at(100)
	due := map[time.Time]bool{}
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		s.id = id
		s.look(at(100))
		d := s.of(probe.Liveness).Due
		require.False(t, d.Before(at(100)) || !d.Before(at(110)), d)
		due[d] = true
	}
	require.Greater(t, len(due), 6)

	s.id, s.start = "new", at(101)
	s.look(at(101))
	require.Equal(t, at(101), s.of(probe.Liveness).Due, "not for what starts after it")

	s = newSim(v1.Container{LivenessProbe: &v1.Probe{InitialDelaySeconds: 200}}, nil)
	s.spread = at(100)
	s.look(at(100))
	require.Equal(t, at(200), s.of(probe.Liveness).Due, "not for what is due later anyway")
}

func TestAdopt(t *testing.T) {
	c := v1.Container{StartupProbe: every(10), ReadinessProbe: every(10)}
	s := newSim(c, always(probe.Success))
	s.states[probe.Startup] = probe.Adopt(probe.Startup, "c1", probe.Passed)
	s.states[probe.Readiness] = probe.Adopt(probe.Readiness, "c1", probe.Passed)
	started, ready, _ := s.verdicts()
	require.True(t, started)
	require.True(t, ready)
	s.until(at(0))
	require.Equal(t, []string{"0s readiness c1"}, s.calls, "startup is not asked again")

	s = newSim(c, always(probe.Failure))
	s.states[probe.Startup] = probe.Adopt(probe.Startup, "c1", probe.Unknown)
	s.until(at(0))
	require.Equal(t, []string{"0s startup c1"}, s.calls)
}

func TestCondemnedBrings(t *testing.T) {
	grace := int64(7)
	startup := every(1)
	startup.TerminationGracePeriodSeconds = &grace
	s := newSim(v1.Container{StartupProbe: startup}, always(probe.Failure))
	s.until(epoch)
	why, own := probe.Condemned(&s.c, "c1", s.of)
	require.Equal(t, "Container web failed startup probe", why)
	require.Equal(t, 7*time.Second, *own)
	why, own = probe.Condemned(&s.c, "c2", s.of)
	require.Empty(t, why)
	require.Nil(t, own)
}

func TestWithoutProbes(t *testing.T) {
	s := newSim(v1.Container{}, nil)
	s.look(epoch)
	started, ready, why := s.verdicts()
	require.True(t, started)
	require.True(t, ready)
	require.Empty(t, why)
	require.Equal(t, epoch, probe.StartedAt(&s.c, "c1", epoch, s.of))
}
