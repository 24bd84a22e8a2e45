package bench

import (
	"cmp"
	"slices"
	"time"
)

// pathSum adds up critical paths.
type pathSum struct {
	pods  int
	waits map[Wait]time.Duration // by Kind and State
}

func (p *pathSum) add(path []Wait) {
	if p.waits == nil {
		p.waits = map[Wait]time.Duration{}
	}
	p.pods++
	for _, w := range path {
		p.waits[Wait{Kind: w.Kind, State: w.State}] += w.Took
	}
}

func (p *pathSum) merge(o pathSum) {
	if p.waits == nil {
		p.waits = map[Wait]time.Duration{}
	}
	p.pods += o.pods
	for w, d := range o.waits {
		p.waits[w] += d
	}
}

// shares are the parts of the whole, the largest first.
func (p *pathSum) shares() []PathShare {
	var whole time.Duration
	for _, d := range p.waits {
		whole += d
	}
	var out []PathShare
	for w, d := range p.waits {
		if d > 0 {
			out = append(out, PathShare{
				Stage: w.Kind, State: w.State, MeanMs: ms(d) / float64(p.pods), Share: float64(d) / float64(whole),
			})
		}
	}
	slices.SortFunc(out, func(a, b PathShare) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.State, b.State))
	})
	return out
}
