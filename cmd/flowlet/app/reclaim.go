package app

import (
	"context"
	"errors"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/config"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/usage"
	"github.com/flowlet/flowlet/stages"
	"github.com/flowlet/flowlet/stages/evict"
	"github.com/flowlet/flowlet/stages/image"
	"github.com/flowlet/flowlet/stages/node"
)

// How often the node is looked at; numbers of kubelet v1.37.2.
const (
	evictionPeriod = 10 * time.Second
	imageGCPeriod  = 5 * time.Minute
	deadPeriod     = time.Minute
)

// reclaimers are the chores that keep the node from running full. A node
// whose use nobody measures has none.
func (a *Agent) reclaimers(p Parts) []node.Chore {
	if p.Node.Usage == nil {
		return nil
	}
	k := p.Config.Kubelet
	collector := a.images.Collector(image.CollectorConfig{
		Rules: image.Rules{
			High: int(*k.ImageGCHighThresholdPercent), Low: int(*k.ImageGCLowThresholdPercent),
			MinAge: k.ImageMinimumGCAge.Duration, MaxAge: k.ImageMaximumGCAge.Duration,
		},
		Stock: p.Runtime, Wanted: a.wantedImages, Tell: a.tellNode,
		Space: func(ctx context.Context) (usage.Filesystem, error) {
			n, err := p.Node.Usage.Node(ctx)
			return n.Images, err
		},
	})
	a.eviction = evict.New(evict.Config{
		Thresholds: p.Node.Thresholds, Transition: k.EvictionPressureTransitionPeriod.Duration,
		MaxGrace:    time.Duration(k.EvictionMaxPodGracePeriod) * time.Second,
		LocalLimits: *k.LocalStorageCapacityIsolation,
		Measure:     measure{&usage.Meter{Runtime: p.Runtime, Disks: p.Node.Usage, Oldest: k.VolumeStatsAggPeriod.Duration}, p.Node.Usage},
		Reclaim:     reclaim{collector, a.dead()},
		Pods:        a.podStates, Judge: a.judge, Tell: a.tellNode,
	})
	return []node.Chore{
		node.Task{Called: "eviction", Period: evictionPeriod, Do: a.eviction.Round},
		node.Task{Called: "image-gc", Period: imageGCPeriod, Do: collector.Round},
	}
}

// thresholds are those of the configuration.
func thresholds(c *config.Config) ([]evict.Threshold, error) {
	k := c.Kubelet
	out, err := evict.Settings{
		Hard: k.EvictionHard, Soft: k.EvictionSoft, SoftGrace: k.EvictionSoftGracePeriod, MinimumReclaim: k.EvictionMinimumReclaim,
		Allocatable: c.EnforcesPods(),
	}.Thresholds()
	if err != nil {
		return nil, located(c, err)
	}
	return out, nil
}

// located puts in front of each finding the file or flag that set its field, as
// the findings of the configuration itself have it.
func located(c *config.Config, err error) error {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		field, _, _ := strings.Cut(line, "[")
		if origin, set := c.Explicit(field); set {
			lines[i] = origin + ": " + line
		}
	}
	return errors.New("invalid configuration:\n  " + strings.Join(lines, "\n  "))
}

type measure struct {
	*usage.Meter
	Usage
}

type reclaim struct {
	images *image.Collector
	dead   *node.Dead
}

// Containers implements evict.Reclaim.
func (r reclaim) Containers() int { return r.dead.All() }

// Images implements evict.Reclaim.
func (r reclaim) Images(ctx context.Context) error { return r.images.Unused(ctx) }

// dead are the containers of all pods that have ended.
func (a *Agent) dead() *node.Dead {
	return &node.Dead{Pods: a.podStates, Drop: func(k pod.Key, ids []string) {
		a.pipeline.Emit(stages.Event{Key: k, Change: pod.Unkept{IDs: ids}, Source: string(pod.ChoreKey("container-gc")), Seen: time.Now()})
	}}
}

func (a *Agent) podStates() []*pod.State {
	views := a.Store.All()
	out := make([]*pod.State, len(views))
	for i, v := range views {
		out[i] = v.State
	}
	return out
}

// wantedImages are the images that pods were told of and may still start
// containers of.
func (a *Agent) wantedImages() map[string]bool {
	out := map[string]bool{}
	for _, v := range a.Store.All() {
		if v.State.Phase >= pod.Finishing {
			continue
		}
		for _, img := range v.State.Images {
			out[img.ID] = true
		}
	}
	return out
}

func (a *Agent) judge(k pod.Key, v pod.Verdict) {
	a.pipeline.Emit(stages.Event{Key: k, Change: pod.Judged{Verdict: v}, Source: string(pod.ChoreKey("eviction")), Seen: time.Now()})
}

// tellNode records an event about the node: a warning in the log until there
// is an API server to send it to.
func (a *Agent) tellNode(reason, message string) {
	a.log.Warn("node", "reason", reason, "message", message)
}

// pressed reports whether the node is under that pressure.
func (a *Agent) pressed(c v1.NodeConditionType) bool { return a.eviction != nil && a.eviction.Under(c) }
