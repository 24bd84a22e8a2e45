package app

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/flowlet/flowlet/pipeline"
)

// notifySystemd tells the service manager, if there is one, that the agent is
// ready, then that it is alive, at half of the interval that the manager
// expects, and at the end that it stops. A runtime that is away is no reason
// to be restarted; a step loop or an engine that does not move is.
func (d *daemon) notifySystemd(ctx context.Context) error {
	d.notify(systemd.SdNotifyReady)
	defer d.notify(systemd.SdNotifyStopping)
	interval, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		d.log.Warn("systemd watchdog", "error", err)
	}
	if interval <= 0 {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(interval / 2)
	defer tick.Stop()
	var last pipeline.Stats
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			d.agent.Engine.Queues() // does not return while the engine is stuck
			now := d.agent.pipeline.Stats()
			if !stuck(last, now) {
				d.notify(systemd.SdNotifyWatchdog)
			}
			last = now
		}
	}
}

// stuck reports whether the step loop had work all the time and did none.
func stuck(last, now pipeline.Stats) bool {
	return last.Dirty > 0 && now.Dirty > 0 && last.Steps == now.Steps
}

func (d *daemon) notify(state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		d.log.Warn("telling systemd", "state", state, "error", err)
	}
}

// ownOOMScore is where the kernel takes the agent's own score from.
const ownOOMScore = "/proc/self/oom_score_adj"

// protect makes the kernel kill others first when memory is short. An agent
// that may not do so runs all the same.
func (d *daemon) protect() {
	score := d.config.Kubelet.OOMScoreAdj
	if score == nil || d.simulated() {
		return
	}
	if err := os.WriteFile(ownOOMScore, []byte(strconv.Itoa(int(*score))), 0o600); err != nil {
		d.log.Warn("oomScoreAdj has no effect", "oom_score_adj", *score, "error", fmt.Errorf("needs CAP_SYS_RESOURCE to be lowered: %w", err))
	}
}
