// Package dagtest has doubles for tests of the engine and of what is built on
// it: stages that play a script, an observer that records and checks every
// move, and random graphs. Facts are integers.
package dagtest

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Script is what one run of a stage does: it takes its time and ends.
type Script struct {
	Takes  time.Duration
	Deaf   bool  // it does not notice when its context ends
	Err    error // it fails with this error
	Panics any   // it panics with this value
	Facts  int   // it learns these, also when it fails
}

// Run plays the script. When ctx ends first it returns the cause.
func (s Script) Run(ctx context.Context) (int, error) {
	stop := ctx.Done()
	if s.Deaf {
		stop = nil
	}
	if s.Takes > 0 {
		select {
		case <-stop:
			return s.Facts, context.Cause(ctx)
		case <-time.After(s.Takes):
		}
	}
	if s.Panics != nil {
		panic(s.Panics)
	}
	return s.Facts, s.Err
}

// Run is one run of a stage.
type Run struct {
	Start time.Time
	End   time.Time // zero: it goes on
	Cause error     // with which its context had ended when it returned
}

// Stage is a stage that plays a script: the first script in its first run and
// so on, the last one again and again. Without a script it does nothing.
type Stage struct {
	Scripts []Script

	mu   sync.Mutex
	runs []Run
}

// Do returns a stage that does the same in each run.
func Do(s Script) *Stage { return &Stage{Scripts: []Script{s}} }

// Run plays the next script; it is the Run of a dag.Node.
func (s *Stage) Run(ctx context.Context) (int, error) {
	script, n := s.begin()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runs[n].End, s.runs[n].Cause = time.Now(), context.Cause(ctx)
	}()
	return script.Run(ctx)
}

func (s *Stage) begin() (Script, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.runs)
	s.runs = append(s.runs, Run{Start: time.Now()})
	if len(s.Scripts) == 0 {
		return Script{}, n
	}
	return s.Scripts[min(n, len(s.Scripts)-1)], n
}

// Runs returns the runs so far, in the order they began.
func (s *Stage) Runs() []Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.runs)
}
