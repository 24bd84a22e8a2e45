package bench

import "time"

// Schemas of the reports, as in docs/bench.md.
const (
	StartSchema = "flowlet.dev/bench.start/v1"
	SyncSchema  = "flowlet.dev/bench.sync/v1"
)

// Head is what every report begins with.
type Head struct {
	Schema   string   `json:"schema"`
	Date     string   `json:"date"` // RFC 3339
	Host     Host     `json:"host"`
	Runtime  Runtime  `json:"runtime"`
	Shape    Shape    `json:"shape"`
	Warnings []string `json:"warnings"`
}

// Host is the machine, as far as it matters.
type Host struct {
	CPUs int     `json:"cpus"`
	Go   string  `json:"go"`
	Load float64 `json:"load1"` // load average of the last minute, before the first run
}

// Runtime is the container runtime.
type Runtime struct {
	Endpoint  string             `json:"endpoint"`
	Name      string             `json:"name"`
	Version   string             `json:"version"`
	InProcess bool               `json:"inProcess"` // its CPU and memory are part of the figures
	LatencyMs map[string]float64 `json:"latencyMs,omitempty"`
}

// StartReport is the result of the start workload.
type StartReport struct {
	Head
	Batches []Batch `json:"batches"`
}

// Batch is the result for one number of pods that are started at once.
type Batch struct {
	Pods   int               `json:"pods"`
	Agent  Driver            `json:"agent"`
	Floor  *Driver           `json:"floor,omitempty"`
	Sweep  []Sweep           `json:"floorSweep,omitempty"` // one run of the floor at each concurrency
	Ratios map[string]Ratio  `json:"ratios,omitempty"`     // agent to floor, by metric of Run
	Parity map[string][2]int `json:"parity,omitempty"`     // calls that differ in number, by method: agent, floor
	Path   []PathShare       `json:"path,omitempty"`       // the agent's runs together
}

// Driver is what one driver did.
type Driver struct {
	Slots  int   `json:"slots,omitempty"` // pods in flight, of the floor
	Median Run   `json:"median"`          // of each figure by itself
	Runs   []Run `json:"runs"`
}

// Sweep is one run of the floor.
type Sweep struct {
	Slots      int     `json:"slots"`
	MakespanMs float64 `json:"makespanMs"`
}

// Run is one batch, started by one driver.
type Run struct {
	P50Ms      float64 `json:"p50Ms"` // from the source's event to ready
	P99Ms      float64 `json:"p99Ms"`
	MakespanMs float64 `json:"makespanMs"` // from the first event to the last pod ready
	PodsPerS   float64 `json:"podsPerSecond"`
	StepsPerS  float64 `json:"syncsPerSecond"` // full looks of the agent at a pod
	Steps      float64 `json:"syncsPerPod"`
	CPUMs      float64 `json:"cpuMsPerPod"` // user and system time of this process
	Calls      float64 `json:"callsPerPod"`
	Heap       float64 `json:"heapBytesPerPod"` // live after collection, beyond that of an agent without pods
	RSS        float64 `json:"rssBytes"`        // of this process, with all pods settled
	Goroutines float64 `json:"goroutinesPerPod"`
	RemoveMs   float64 `json:"removeMs"` // of all pods

	ByMethod map[string]int `json:"calls,omitempty"`
}

// PathShare is how much of the critical paths of starts one kind of stage took
// in one state.
type PathShare struct {
	Stage  string  `json:"stage,omitempty"` // empty: none was busy
	State  string  `json:"state"`
	MeanMs float64 `json:"meanMsPerPod"`
	Share  float64 `json:"share"` // 0 to 1
}

// SyncReport is the result of the sync workload.
type SyncReport struct {
	Head
	Pods  int        `json:"pods"`
	Kinds []SyncKind `json:"kinds"`
}

// SyncKind is what one kind of sync costs.
type SyncKind struct {
	Kind     string  `json:"kind"` // "resync", "relist", "step" or "annotation"
	What     string  `json:"what"`
	Events   uint64  `json:"events"`
	PerS     float64 `json:"perSecond"`
	CPUMicro float64 `json:"cpuMicroseconds"` // per event
	Allocs   float64 `json:"allocations"`     // per event
	Bytes    float64 `json:"allocatedBytes"`  // per event
	Steps    uint64  `json:"syncs"`
	Runs     uint64  `json:"stageRuns"` // every call and every write is in one
	Calls    int     `json:"calls"`     // of the agent to the runtime in that time, for any reason
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// figures are the numbers of a Run by their JSON names.
func (r *Run) figures() map[string]*float64 {
	return map[string]*float64{
		"p50Ms": &r.P50Ms, "p99Ms": &r.P99Ms, "makespanMs": &r.MakespanMs, "podsPerSecond": &r.PodsPerS,
		"syncsPerSecond": &r.StepsPerS, "syncsPerPod": &r.Steps, "cpuMsPerPod": &r.CPUMs, "callsPerPod": &r.Calls,
		"heapBytesPerPod": &r.Heap, "rssBytes": &r.RSS, "goroutinesPerPod": &r.Goroutines, "removeMs": &r.RemoveMs,
	}
}

// column returns one figure of all runs.
func (d *Driver) column(name string) []float64 {
	out := make([]float64, len(d.Runs))
	for i := range d.Runs {
		out[i] = *d.Runs[i].figures()[name]
	}
	return out
}

func (d *Driver) summarize() {
	for name, at := range d.Median.figures() {
		*at = Median(d.column(name))
	}
	d.Median.ByMethod = d.medianCalls()
}

func (d *Driver) medianCalls() map[string]int {
	out := map[string]int{}
	for _, r := range d.Runs {
		for method := range r.ByMethod {
			out[method] = 0
		}
	}
	for method := range out {
		n := make([]float64, len(d.Runs))
		for i := range d.Runs {
			n[i] = float64(d.Runs[i].ByMethod[method])
		}
		if out[method] = int(Median(n)); out[method] == 0 {
			delete(out, method)
		}
	}
	return out
}
