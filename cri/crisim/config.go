package crisim

import (
	"io"
	"math"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Config says what kind of runtime to play. The zero value is containerd 2 without latency, with every image pullable.
type Config struct {
	// Seed makes IDs and random latencies repeatable.
	Seed uint64
	// Name and Version are what the Version call reports (default "flowlet-sim", "2.0.0").
	Name, Version string

	// Latency is how long each method works before it takes effect; a method that is not named takes no time.
	Latency map[string]Latency
	// Serial is the part of a method, after its latency, that only one call at a time can be in (as behind a database
	// lock).
	Serial map[string]time.Duration
	// Slots is the number of writes to sandboxes and containers that are worked on at once, 0 for any number. A call
	// that waits for a process to end or an image to arrive holds no slot meanwhile.
	Slots int

	// Images scripts images by reference. A reference that is not here can be pulled and is not present.
	Images map[string]Image
	// Handlers are the runtime handlers besides the default one.
	Handlers []string
	// CgroupDriver is what RuntimeConfig reports; the zero value is systemd, as in the CRI.
	CgroupDriver runtimeapi.CgroupDriver
	// DualStack gives every sandbox an IPv6 address as well.
	DualStack bool

	// NoEvents, NoRuntimeConfig and NoStreams make those calls Unimplemented, as in older runtimes; see Containerd16.
	NoEvents, NoRuntimeConfig, NoStreams bool
	// NoFeatures makes Status name no handlers and no features, as in older runtimes; see Containerd16.
	NoFeatures bool
	// StreamBatch is the number of items in one message of a streaming list (default 5000, as in containerd).
	StreamBatch int
	// NameTaken is the code for a name that is in use: FailedPrecondition by default, as in containerd 2.
	NameTaken codes.Code
	// EventRetention is how long events are kept for the next reader while there is none (default 5 minutes, as in
	// containerd; negative: not at all).
	EventRetention time.Duration

	// CallLimit is the number of calls that Calls can show (default 100,000; older ones are forgotten).
	CallLimit int
	// CallLog gets every ended call as a line of JSON. Writes are serialised; errors are ignored.
	CallLog io.Writer
	// Logs opens log files of containers; nil writes none.
	Logs Logs
	// Lean drops what no CRI call returns (environment, command, devices) of a container, for large simulations.
	Lean bool
}

// Containerd16 makes c a runtime that lacks what containerd 1.6 lacks and answers as it does.
func Containerd16(c Config) Config {
	c.Version, c.NameTaken, c.NoEvents, c.NoRuntimeConfig, c.NoStreams, c.NoFeatures = "1.6.20", codes.Unknown, true, true, true, true
	return c
}

// Image scripts one image reference.
type Image struct {
	Present bool          // already there at the start
	Pull    time.Duration // how long PullImage takes, on top of the latency of the method
	Err     error         // what PullImage returns instead; a gRPC status error keeps its code
	Auth    string        // "user:password" that PullImage demands; empty: anybody
	Size    uint64        // bytes (default 10 MiB)
	User    string        // user of the image: a number or a name, optionally with ":group"
	Digest  string        // "sha256:…" of the manifest (default: derived from the reference)
	Pinned  bool
}

// Latency gives the duration of one call. r is seeded by the runtime and not to be kept.
type Latency func(r *rand.Rand) time.Duration

// Fixed is always d.
func Fixed(d time.Duration) Latency { return func(*rand.Rand) time.Duration { return d } }

// LogNormal has the given median; sigma is the standard deviation of the logarithm (0.3 is mild, 1 is wild).
func LogNormal(median time.Duration, sigma float64) Latency {
	return func(r *rand.Rand) time.Duration {
		return time.Duration(float64(median) * math.Exp(sigma*r.NormFloat64()))
	}
}

// Empirical draws from measured durations; samples must not be empty.
func Empirical(samples []time.Duration) Latency {
	return func(r *rand.Rand) time.Duration { return samples[r.IntN(len(samples))] }
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "flowlet-sim"
	}
	if c.Version == "" {
		c.Version = "2.0.0"
	}
	if c.StreamBatch <= 0 {
		c.StreamBatch = 5000
	}
	if c.NameTaken == codes.OK {
		c.NameTaken = codes.FailedPrecondition
	}
	if c.EventRetention == 0 {
		c.EventRetention = 5 * time.Minute
	}
	if c.CallLimit == 0 {
		c.CallLimit = 100_000
	}
	return c
}
