package app

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/config"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/pipeline"
	"github.com/flowlet/flowlet/sources/ticker"
	"github.com/flowlet/flowlet/stages"
	"github.com/flowlet/flowlet/stages/node"
)

// chores are those of this node.
func (a *Agent) chores(p Parts) []node.Chore {
	out := a.reclaimers(p)
	if most := p.Config.Dead.OnNode; most >= 0 {
		bound := func(context.Context) error { a.dead().Bound(most); return nil }
		out = append(out, node.Task{Called: "container-gc", Period: deadPeriod, Do: bound})
	}
	if p.Node.Logs != nil {
		out = append(out, node.NewLogs(*p.Node.Logs, p.Runtime, a.logs))
	}
	if p.Node.Orphans != nil {
		c := *p.Node.Orphans
		c.Known = func(uid types.UID) bool { _, ok := a.Store.Get(pod.KeyOf(uid)); return ok }
		c.Running = a.logs
		out = append(out, &node.Orphans{OrphanConfig: c})
	}
	return out
}

// LogLimits are those of the configuration, which was validated; nil when a
// negative size says that logs are not to be rotated.
func LogLimits(c *config.Config) *node.LogLimits {
	k := c.Kubelet
	size := resource.MustParse(k.ContainerLogMaxSize)
	if size.Sign() < 0 {
		return nil
	}
	return &node.LogLimits{MaxSize: size.Value(), MaxFiles: int(*k.ContainerLogMaxFiles), Every: k.ContainerLogMonitorInterval.Duration}
}

// logs lists those of running containers, also of pods that are left alone.
func (a *Agent) logs() []node.Log {
	var out []node.Log
	for _, v := range a.Store.All() {
		for _, c := range v.State.Containers {
			if c.Live() && !c.Unknown && c.LogPath != "" {
				id := v.State.Identity
				out = append(out, node.Log{Of: id.Namespace + "/" + id.Name + "/" + c.Name, ID: c.ID, Path: c.LogPath})
			}
		}
	}
	return out
}

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
