package app

import (
	"time"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/sources/ticker"
	"github.com/flowlet/flowlet/stages"
	"github.com/flowlet/flowlet/stages/node"
)

// chores are those of this node.
func (a *Agent) chores(Parts) []node.Chore { return nil }

// tickers ask for the chores that have a period, for the first time at once.
func tickers(chores []node.Chore) []Source {
	var out []Source
	for _, c := range chores {
		if c.Every() <= 0 {
			continue
		}
		k, why := pod.ChoreKey(c.Name()), "every "+c.Every().String()
		out = append(out, &ticker.Source[pod.Key, pod.Change]{
			Called: string(k), Period: c.Every(), AtOnce: true,
			Event: func(tick time.Time) pipeline.Event[pod.Key, pod.Change] {
				return stages.Event{Key: k, Change: pod.Due{At: tick, Why: why}}
			},
		})
	}
	return out
}
