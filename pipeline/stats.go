package pipeline

import "time"

// Stats is what a pipeline has done so far and how it stands.
type Stats struct {
	Folded    uint64 // events
	Unchanged uint64 // of these: events about keys that changed nothing
	Coalesced uint64 // marks of a key that was to be stepped already
	Steps     uint64
	Keys      int // keys with a state
	Dirty     int // of these: to be stepped now
	Sources   []SourceStats
}

// SourceStats is how a source stands.
type SourceStats struct {
	Name     string
	Synced   bool      // it has emitted all it knows at least once
	Restarts int       // runs after the first
	Err      error     // of the last run that returned early; nil if none did
	RetryAt  time.Time // when it is run again; zero: it runs
}

// Stats returns a snapshot. Sources are in the order they were added.
func (p *Pipeline[K, C, S]) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.counts
	stats := Stats{
		Folded: c.folded, Unchanged: c.unchanged, Coalesced: c.coalesced, Steps: c.steps,
		Keys: len(p.slots), Dirty: len(p.dirty.list.slots),
	}
	for _, s := range p.sources {
		stats.Sources = append(stats.Sources, SourceStats{
			Name: s.Name(), Synced: s.synced, Restarts: s.restarts, Err: s.err, RetryAt: s.retryAt,
		})
	}
	return stats
}

// State returns the state of a key, and whether it has one.
func (p *Pipeline[K, C, S]) State(k K) (S, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.slots[k]
	if !ok {
		var none S
		return none, false
	}
	return s.state, true
}

// Len returns how many keys have a state.
func (p *Pipeline[K, C, S]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.slots)
}
