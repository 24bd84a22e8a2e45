package dag

import "time"

// Order says who comes first in a class queue.
type Order string

// The orders of a class queue. Within equal priority both are first in, first out.
const (
	ByPriority Order = "priority" // the graph's priority, higher first
	ByArrival  Order = "fifo"
)

// Backoff gives the delay after the n-th failure in a row of one task key:
// Initial, then each time Factor times as long, at most Max. There is no
// jitter unless Jitter is set; it then comes from the engine's seed.
type Backoff struct {
	Initial time.Duration // 0 means 1 s
	Max     time.Duration // 0 means 5 min
	Factor  float64       // 0 means 2
	Jitter  float64       // the delay is longer by up to this fraction of it, 0 to 1
}

// Class is a row of the policy: how stages of that class are queued and run.
type Class struct {
	Slots    int           // runs at a time; 0 means no limit
	Order    Order         // empty means ByPriority
	Deadline time.Duration // of one run; 0 means none
	Grace    time.Duration // after the deadline, before a run that did not return counts as lost; 0 means 1 s
	Backoff  Backoff
	MaxLost  int // lost runs at which the class stops starting; 0 means no limit
}

// Policy maps class names to rows. A class "image/registry.example" that has no
// row of its own has a queue of its own under the row "image"; a class without
// any row uses the row "".
type Policy map[string]Class
