package dag

import (
	"errors"
	"time"
)

// Causes with which the engine ends a run's context.
var (
	// ErrSuperseded: the newest graph lacks the stage or gives it another key.
	ErrSuperseded = errors.New("no longer wanted")
	// ErrDeadline: the run's class deadline has passed.
	ErrDeadline = errors.New("deadline of its class exceeded")
	// ErrStopping: the engine is shutting down.
	ErrStopping = errors.New("agent is stopping")
)

type retryAfter struct {
	err error
	d   time.Duration
}

func (e *retryAfter) Error() string { return e.err.Error() }
func (e *retryAfter) Unwrap() error { return e.err }

// RetryAfter returns err with its own delay in place of the class back-off. It
// returns nil if err is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryAfter{err, d}
}

type terminal struct{ err error }

func (e *terminal) Error() string { return e.err.Error() }
func (e *terminal) Unwrap() error { return e.err }

// Terminal returns err as one that trying again cannot mend: the stage stays
// failed until its key changes. It wins over a RetryAfter in the same error,
// and returns nil if err is nil.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return &terminal{err}
}
