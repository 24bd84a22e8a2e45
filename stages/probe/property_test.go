package probe_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/stages/probe"
)

func drawProbe(t *rapid.T, k probe.Kind) *v1.Probe {
	p := &v1.Probe{
		InitialDelaySeconds: rapid.Int32Range(0, 20).Draw(t, "initialDelay"),
		PeriodSeconds:       rapid.Int32Range(1, 10).Draw(t, "period"),
		FailureThreshold:    rapid.Int32Range(1, 4).Draw(t, "failureThreshold"),
		SuccessThreshold:    1,
	}
	if k == probe.Readiness {
		p.SuccessThreshold = rapid.Int32Range(1, 4).Draw(t, "successThreshold")
	}
	return p
}

var outcomes = []probe.Outcome{probe.None, probe.Success, probe.Warning, probe.Failure, probe.Errored}

// A random life of a container: checks with random results at their due time or
// late, restarts of container and agent, the end of the pod.
func TestAnyLife(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSim(v1.Container{}, nil)
		if rapid.Bool().Draw(t, "startup") {
			s.c.StartupProbe = drawProbe(t, probe.Startup)
		}
		s.c.LivenessProbe, s.c.ReadinessProbe = drawProbe(t, probe.Liveness), drawProbe(t, probe.Readiness)
		now, last := epoch, map[probe.Kind]time.Time{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			s.look(now)
			checkAll(t, s, now)
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				now = now.Add(time.Second)
				s.id, s.start = s.id+"'", now
				clear(last)
			case 1:
				now = now.Add(time.Minute)
				reload(t, s, now)
			case 2:
				s.ending = true
			case 3:
				s.early = now
			default:
				now = step(t, s, now, last)
			}
		}
	})
}

// step makes one check, the first that is due or any later one, some time late.
func step(t *rapid.T, s *sim, now time.Time, last map[probe.Kind]time.Time) time.Time {
	k := rapid.SampledFrom(probe.Kinds()).Draw(t, "kind")
	before := s.of(k)
	if before.Due.IsZero() {
		return now
	}
	if before.Due.After(now) {
		now = before.Due
	}
	now = now.Add(time.Duration(rapid.IntRange(0, 30_000).Draw(t, "late")) * time.Millisecond)
	s.answer = always(rapid.SampledFrom(outcomes).Draw(t, "outcome"))
	s.check(k, now)
	after := s.of(k)
	if o := s.answer(k, now); o == probe.None {
		require.Equal(t, before, after)
	} else if !after.Due.IsZero() {
		require.True(t, after.Due.After(now), "no check is due twice")
		require.False(t, after.Due.After(now.Add(time.Duration(k.Of(&s.c).PeriodSeconds)*time.Second)), "none is left out")
	}
	if after.Verdict != before.Verdict {
		require.Equal(t, now, after.Since)
		require.Equal(t, after.Last, after.Verdict, "a verdict is that of the last results")
	}
	require.True(t, last[k].Before(now) || last[k].IsZero() || last[k].Equal(now))
	last[k] = now
	return now
}

// checkAll holds for all states at all times.
func checkAll(t *rapid.T, s *sim, now time.Time) {
	started, _, _ := s.verdicts()
	for _, k := range probe.Kinds() {
		st := s.of(k)
		require.Equal(t, st, probe.Next(st, s.in(k), probe.Result{}, now.Add(time.Hour)), "a second look changes nothing")
		if !st.Due.IsZero() {
			require.False(t, st.Hold)
			require.True(t, started || k == probe.Startup, "%s before it has started", k)
			require.True(t, !s.ending || k == probe.Readiness, "%s while the pod ends", k)
			first := s.start.Add(time.Duration(k.Of(&s.c).InitialDelaySeconds) * time.Second)
			require.False(t, st.Due.Before(first))
		}
		require.Equal(t, s.id, st.ID)
	}
}

// reload is a restart of the agent; verdicts stay as they were.
func reload(t *rapid.T, s *sim, now time.Time) {
	started, ready, why := s.verdicts()
	record, err := json.Marshal(s.states)
	require.NoError(t, err)
	old := s.states
	s.states = nil
	require.NoError(t, json.Unmarshal(record, &s.states))
	for k, st := range old {
		require.True(t, st.Equal(s.states[k]))
	}
	s.spread = now
	s.look(now)
	s2, r2, w2 := s.verdicts()
	require.Equal(t, []any{started, ready, why}, []any{s2, r2, w2})
}
