package journal

import "github.com/flowlet/flowlet/dag"

// late is a start that is over but for the runs that were going on when it
// ended. The zero value is none.
type late struct {
	episode *Closed
	runs    map[dag.ID]struct{}
}

func (l *late) waitsFor(id dag.ID) bool {
	_, ok := l.runs[id]
	return ok
}

// over takes note that a run is over. It returns the episode with the last one.
func (l *late) over(id dag.ID) *Closed {
	delete(l.runs, id)
	if len(l.runs) > 0 {
		return nil
	}
	return l.giveUp()
}

// giveUp returns the episode as it is, nil if there is none.
func (l *late) giveUp() *Closed {
	c := l.episode
	if c != nil {
		c.ep.tape.clip()
	}
	*l = late{}
	return c
}

// running returns the stages whose newest move was the beginning of a run.
func (t *tape) running() map[dag.ID]struct{} {
	out := map[dag.ID]struct{}{}
	for _, p := range t.records {
		switch id := t.stageOf(p.stage); {
		case p.kind == moved && p.state == dag.Running:
			out[id] = struct{}{}
		case p.kind == moved || p.kind == gone:
			delete(out, id)
		}
	}
	return out
}
