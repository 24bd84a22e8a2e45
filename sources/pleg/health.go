package pleg

import (
	"sync"
	"time"
)

// Health is how the source fares.
type Health struct {
	Listed    time.Time // begin of the last list that succeeded; zero: never
	ListErr   error     // of the last list
	Answered  time.Time // last answer of the runtime about itself; zero: never
	StatusErr error     // of the last question
	Events    bool      // the event stream is open
	Since     time.Time // since when it is, or is not
	Why       string    // why there is no event stream
}

// Health tells how the source fares. It may be called at any time.
func (s *Source) Health() Health {
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	return s.health.now
}

type health struct {
	mu     sync.Mutex
	now    Health
	opened time.Time // of the stream; zero: there is none
}

func (h *health) listed(began time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now.ListErr = err; err == nil {
		h.now.Listed = began
	}
}

func (h *health) answered(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now.StatusErr = err; err == nil {
		h.now.Answered = time.Now()
	}
}

// opening notes that a stream is being opened. Nothing tells when it is open,
// so it counts as open when it has not failed for a while.
func (h *health) opening(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opened = at
}

// streaming reports whether the stream has been there for that long.
func (h *health) streaming(now time.Time, long time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	on := !h.opened.IsZero() && now.Sub(h.opened) >= long
	if on && !h.now.Events {
		h.now.Events, h.now.Since, h.now.Why = true, h.opened, ""
	}
	return on
}

// events notes that there is no stream, and why.
func (h *health) noStream(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now.Events || h.now.Since.IsZero() {
		h.now.Since = time.Now()
	}
	h.now.Events, h.now.Why, h.opened = false, why, time.Time{}
}
