package pod

import "time"

// healthyRun is the time a container has to run for its crash count to start
// again: twice the default maximum of the back-off (kubelet v1.37.2).
const healthyRun = 10 * time.Minute

// Delay returns how long after its last exit a container is started again:
// at once after the first exit, then initial, doubling up to most.
func (c Crash) Delay(initial, most time.Duration) time.Duration {
	if c.Exits <= 1 {
		return 0
	}
	d := min(initial, most)
	for range c.Exits - 2 {
		if d *= 2; d >= most {
			return most
		}
	}
	return d
}

// exited counts the exit of the newest container of a name.
func (c Crash) exited(now Container) Crash {
	if c.ID == now.ID {
		return c
	}
	ran := now.Exit.FinishedAt.Sub(now.StartedAt)
	if now.StartedAt.IsZero() {
		ran = 0
	}
	exits := c.Exits + 1
	if c.Hash != now.Hash || ran > healthyRun {
		exits = 1
	}
	return Crash{ID: now.ID, Hash: now.Hash, Exits: exits}
}
