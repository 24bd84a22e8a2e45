package dag

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Delays of a Backoff that leaves them open. The upper one is the kubelet's
// limit for image pulls and crashing containers.
const (
	defaultInitial = time.Second
	defaultMax     = 5 * time.Minute
	defaultFactor  = 2
)

// Delay returns how long to wait after the n-th failure in a row (from 1),
// without jitter. It depends on nothing but n.
func (b Backoff) Delay(n int) time.Duration {
	exp := &backoff.ExponentialBackOff{
		InitialInterval: orDefault(b.Initial, defaultInitial),
		Multiplier:      orDefault(b.Factor, defaultFactor),
		MaxInterval:     orDefault(b.Max, defaultMax),
		Clock:           backoff.SystemClock, // read by the library, without effect while MaxElapsedTime is 0
	}
	exp.Reset()
	delay := exp.NextBackOff()
	for range n - 1 {
		if delay >= exp.MaxInterval {
			break // it stays there
		}
		delay = exp.NextBackOff()
	}
	return min(delay, exp.MaxInterval)
}

func orDefault[T int | float64 | time.Duration](v, d T) T {
	if v <= 0 {
		return d
	}
	return v
}

// retryAt returns when a stage that failed at now is tried again; zero: never.
func retryAt(now time.Time, err error, delay time.Duration) time.Time {
	if _, ok := errors.AsType[*terminal](err); ok {
		return time.Time{}
	}
	if r, ok := errors.AsType[*retryAfter](err); ok {
		delay = r.d
	}
	return now.Add(delay)
}

// jittered lengthens a delay by up to the fraction.
func jittered(delay time.Duration, fraction float64, rng *rand.Rand) time.Duration {
	if fraction <= 0 {
		return delay
	}
	return delay + time.Duration(rng.Float64()*fraction*float64(delay))
}
