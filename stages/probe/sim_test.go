package probe_test

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/stages/probe"
)

// epoch is the start of every simulation.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(s float64) time.Time { return epoch.Add(time.Duration(s * float64(time.Second))) }

// sim plays the probes of one container in virtual time.
type sim struct {
	c       v1.Container
	id      string
	start   time.Time // of the container
	running bool
	ending  bool
	early   time.Time
	spread  time.Time
	states  map[probe.Kind]probe.State
	answer  func(k probe.Kind, now time.Time) probe.Outcome
	took    time.Duration // of each check
	calls   []string      // "10s liveness c1"
}

func newSim(c v1.Container, answer func(k probe.Kind, now time.Time) probe.Outcome) *sim {
	c.Name = "web"
	return &sim{c: c, id: "c1", start: epoch, running: true, states: map[probe.Kind]probe.State{}, answer: answer}
}

func always(o probe.Outcome) func(probe.Kind, time.Time) probe.Outcome {
	return func(probe.Kind, time.Time) probe.Outcome { return o }
}

func (s *sim) of(k probe.Kind) probe.State { return s.states[k] }

func (s *sim) in(k probe.Kind) probe.In {
	return probe.In{
		Kind: k, Probe: k.Of(&s.c), ID: s.id, StartedAt: s.start, Running: s.running, Ending: s.ending,
		Started: probe.StartedAt(&s.c, s.id, s.start, s.of), Early: s.early, Spread: s.spread,
	}
}

// look brings all states in line with the facts.
func (s *sim) look(now time.Time) {
	for _, k := range probe.Kinds() {
		s.states[k] = probe.Next(s.states[k], s.in(k), probe.Result{}, now)
	}
}

// until makes each check when it falls due, up to and including a time.
func (s *sim) until(end time.Time) {
	for {
		next, due := probe.Kind(""), time.Time{}
		for _, k := range probe.Kinds() {
			s.states[k] = probe.Next(s.states[k], s.in(k), probe.Result{}, end)
			if d := s.states[k].Due; !d.IsZero() && (due.IsZero() || d.Before(due)) {
				next, due = k, d
			}
		}
		if due.IsZero() || due.After(end) {
			return
		}
		s.check(next, due)
	}
}

func (s *sim) check(k probe.Kind, now time.Time) {
	s.calls = append(s.calls, fmt.Sprintf("%s %s %s", now.Sub(epoch), k, s.id))
	r := probe.Result{ID: s.id, Outcome: s.answer(k, now)}
	s.states[k] = probe.Next(s.states[k], s.in(k), r, now.Add(s.took))
}

// verdicts are what status and graph make of it.
func (s *sim) verdicts() (started, ready bool, why string) {
	started, ready = probe.Verdicts(&s.c, s.id, s.of)
	why, _ = probe.Condemned(&s.c, s.id, s.of)
	return started, ready, why
}

func every(period int32) *v1.Probe {
	return &v1.Probe{PeriodSeconds: period, FailureThreshold: 1, SuccessThreshold: 1}
}
