package pipeline

import (
	"context"
	"time"
)

// loop steps what is dirty until ctx ends. One timer stands for all wake-ups.
func (p *Pipeline[K, C, S]) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		if j := p.take(time.Now()); j != nil {
			p.step(j)
			continue
		}
		if wake := p.nextWake(); wake.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(wake))
		}
		select {
		case <-ctx.Done():
		case <-p.poke:
		case <-timer.C:
		}
	}
}

// job is what a step is given.
type job[K comparable, S any] struct {
	slot  *slot[K, S]
	state S
	cause uint64
}

// take marks who is to be woken by now and takes the first of the dirty.
func (p *Pipeline[K, C, S]) take(now time.Time) *job[K, S] {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := p.wakes.first(); s != nil && !s.wake.After(now); s = p.wakes.first() {
		p.wakes.remove(s)
		p.mark(s)
	}
	s := p.dirty.first()
	if s == nil {
		return nil
	}
	p.dirty.remove(s)
	p.stepping = true
	p.counts.steps++
	return &job[K, S]{slot: s, state: s.state, cause: s.cause}
}

// step looks at one key, without the lock.
func (p *Pipeline[K, C, S]) step(j *job[K, S]) {
	next := p.domain.Step(j.slot.key, j.state, j.cause)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.apply(j.slot, next)
	p.stepping = false
	clear(p.changed)
}

// apply notes what a step asked for. What came while it ran made the key dirty
// again, except a change of a topic that it had not read before.
func (p *Pipeline[K, C, S]) apply(s *slot[K, S], next Next) {
	for _, topic := range next.Reads {
		if cause, ok := p.changed[topic]; ok && !s.dirty() {
			s.cause = cause
			p.mark(s)
		}
	}
	if next.Forget && !s.dirty() {
		p.readers.set(s, nil)
		p.wakes.remove(s)
		delete(p.slots, s.key)
		return
	}
	p.readers.set(s, next.Reads)
	s.wake = next.Wake
	if s.wake.IsZero() {
		p.wakes.remove(s)
	} else {
		p.wakes.add(s)
	}
}

// nextWake returns when the next key is to be woken, zero if none is.
func (p *Pipeline[K, C, S]) nextWake() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.wakes.first(); s != nil {
		return s.wake
	}
	return time.Time{}
}
