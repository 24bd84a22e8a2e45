package config

import (
	"time"

	"github.com/flowlet/flowlet/dag"
)

// defaultPolicy is the table of classes. cpus is the number of CPUs that the
// agent may use.
func defaultPolicy(cpus int) dag.Policy {
	// Runtimes thrash when too much starts at once: on two CPUs 4 to 8
	// sandboxes at a time start twice as many per second as all at once.
	start := min(max(2*cpus, 4), 32)
	retry := dag.Backoff{Initial: time.Second, Max: time.Minute, Factor: 2}
	mount := dag.Backoff{Initial: 500 * time.Millisecond, Max: 122 * time.Second, Factor: 2} // the kubelet's volume operations
	node := dag.Backoff{Initial: 250 * time.Millisecond, Max: 30 * time.Second, Factor: 2}   // local files: cheap to try again

	return dag.Policy{
		// Whatever has no row.
		"": {Slots: 16, Deadline: 2 * time.Minute, Grace: graceDefault, Backoff: retry, MaxLost: 4},

		// One queue per registry; a slow one does not hold up the others. The
		// runtime ends a pull that makes no progress by itself (containerd:
		// 5 minutes); the hour is for a runtime that does not. Back-off is the
		// kubelet's ImagePullBackOff.
		"image": {Slots: 5, Deadline: time.Hour, Grace: graceDefault, Backoff: dag.Backoff{Initial: 10 * time.Second, Max: 300 * time.Second, Factor: 2}, MaxLost: 4},

		// RunPodSandbox sets up the network and gets twice the time of other
		// calls, as in the kubelet.
		"sandbox": {Slots: start, Deadline: 4 * time.Minute, Grace: graceDefault, Backoff: retry, MaxLost: 4},
		// Create and start of one container.
		"container": {Slots: start, Deadline: 2 * time.Minute, Grace: graceDefault, Backoff: retry, MaxLost: 4},
		// Stops mostly wait for the process to end, so many may wait at a time
		// and none ends before the longest usual grace period.
		"stop": {Slots: 64, Grace: graceDefault, Backoff: retry, MaxLost: 16},
		// Hooks run in or beside containers and are bounded by the grace period.
		"hook": {Slots: 32, Grace: graceDefault, Backoff: retry, MaxLost: 8},
		// Removal of sandboxes, containers, mounts, directories.
		"teardown": {Slots: start, Deadline: 2 * time.Minute, Grace: graceDefault, Backoff: retry, MaxLost: 8},

		// A mount of a dead server hangs for ever and is lost; a few of them
		// leave room for the others.
		"mount": {Slots: 16, Deadline: 2 * time.Minute, Grace: graceDefault, Backoff: mount, MaxLost: 8},
		// Decisions of the ledger, one at a time: the pod with the highest
		// priority first.
		"admit": {Slots: 1, Deadline: 30 * time.Second, Grace: graceDefault, Backoff: node},
		// Look-ups of images never wait behind a pull.
		"image.look": {Slots: 4 * start, Deadline: 2 * time.Minute, Grace: graceDefault, Backoff: dag.Backoff{Initial: 10 * time.Second, Max: 300 * time.Second, Factor: 2}, MaxLost: 8},

		"cgroup": {Slots: 8, Deadline: 30 * time.Second, Grace: graceDefault, Backoff: node, MaxLost: 4},
		"dirs":   {Slots: 8, Deadline: 30 * time.Second, Grace: graceDefault, Backoff: node, MaxLost: 4},
		"inputs": {Slots: 16, Deadline: 30 * time.Second, Grace: graceDefault, Backoff: retry, MaxLost: 4},

		// Probes have their own timeouts, up to three tries of any length; the
		// deadline is for a runtime that does not keep them. Their period is
		// their retry.
		"probe-exec": {Slots: 8, Deadline: time.Hour, Grace: graceDefault, Backoff: node, MaxLost: 4},
		"probe-net":  {Slots: 32, Deadline: time.Hour, Grace: graceDefault, Backoff: node},

		// Reads of the runtime that settle what an interrupted call did.
		"observe": {Slots: 8, Deadline: 30 * time.Second, Grace: graceDefault, Backoff: node, MaxLost: 4},
		// State files: small writes off the start path.
		"state": {Slots: 2, Order: dag.ByArrival, Deadline: 30 * time.Second, Grace: graceDefault, Backoff: node, MaxLost: 1},
		// Rotation of container logs: most of it is compressing what was rotated.
		"log.rotate": {Slots: 1, Order: dag.ByArrival, Deadline: 2 * time.Minute, Grace: graceDefault, Backoff: retry, MaxLost: 4},
		// Calls to the API server, spread after an outage of it.
		"status": {Slots: 8, Deadline: 30 * time.Second, Grace: graceDefault, Backoff: dag.Backoff{Initial: time.Second, Max: time.Minute, Factor: 2, Jitter: 0.2}, MaxLost: 4},
	}
}

// graceDefault: a call that was told to end answers within milliseconds; on a
// loaded machine within seconds.
const graceDefault = 10 * time.Second

// defaultPolicy for this configuration: explicit settings of the kubelet's
// fields move the rows they are about.
func (c *Config) defaultPolicy(cpus int) dag.Policy {
	p := defaultPolicy(cpus)
	image := p["image"]
	if c.SharedPullQueue() {
		image.Order = dag.ByArrival // the kubelet's queue
	}
	if c.serialPulls() {
		image.Slots = 1
	} else if n := c.Kubelet.MaxParallelImagePulls; n != nil {
		image.Slots = int(*n)
	}
	p["image"] = image
	logs := p["log.rotate"]
	logs.Slots = int(*c.Kubelet.ContainerLogMaxWorkers)
	p["log.rotate"] = logs
	return p
}
