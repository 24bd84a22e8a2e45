package crisim

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Target names what a call is about; fields that a method does not have are empty.
type Target struct {
	Method    string `json:"method"`              // "RunPodSandbox"
	UID       string `json:"uid,omitempty"`       // of the pod
	Namespace string `json:"namespace,omitempty"` // of the pod
	Pod       string `json:"pod,omitempty"`       // its name
	Container string `json:"container,omitempty"` // name in the pod
	Attempt   uint32 `json:"attempt,omitempty"`   // of the container, or of the sandbox where there is no container
	Object    string `json:"object,omitempty"`    // ID of the sandbox or container, or the image reference
}

// Call is one call as the runtime saw it.
type Call struct {
	Target
	Start    time.Time // arrival
	End      time.Time // zero while it runs
	InFlight int       // calls of the same method under way when it arrived, itself included
	Code     codes.Code
	Err      string // text of the error, without gRPC's framing
}

// Took is how long the call lasted, 0 while it runs.
func (c Call) Took() time.Duration {
	if c.End.IsZero() {
		return 0
	}
	return c.End.Sub(c.Start)
}

// callLog keeps the newest calls in a ring.
type callLog struct {
	out   io.Writer
	epoch time.Time

	mu       sync.Mutex
	ring     []*Call
	next     int // where the next call goes once the ring is full
	limit    int
	inFlight map[string]int
}

func newCallLog(limit int, out io.Writer) *callLog {
	return &callLog{out: out, epoch: time.Now(), limit: limit, inFlight: map[string]int{}}
}

func (l *callLog) begin(t Target) *Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight[t.Method]++
	c := &Call{Target: t, Start: time.Now(), InFlight: l.inFlight[t.Method]}
	switch {
	case l.limit < 0:
	case len(l.ring) < l.limit:
		l.ring = append(l.ring, c)
	default:
		l.ring[l.next] = c
		l.next = (l.next + 1) % l.limit
	}
	return c
}

// end completes c; object is what a create call made.
func (l *callLog) end(c *Call, object string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight[c.Method]--
	c.End = time.Now()
	if object != "" {
		c.Object = object
	}
	if err != nil {
		s := status.Convert(err)
		c.Code, c.Err = s.Code(), s.Message()
	}
	if l.out != nil {
		l.write(c)
	}
}

// write adds a line; times are nanoseconds since New on the monotonic clock.
func (l *callLog) write(c *Call) {
	line, err := json.Marshal(struct {
		Target
		Start    int64  `json:"start_ns"`
		End      int64  `json:"end_ns"`
		InFlight int    `json:"in_flight"`
		Code     string `json:"code"`
		Err      string `json:"error,omitempty"`
	}{c.Target, int64(c.Start.Sub(l.epoch)), int64(c.End.Sub(l.epoch)), c.InFlight, c.Code.String(), c.Err})
	if err == nil {
		_, _ = l.out.Write(append(line, '\n'))
	}
}

// Calls returns the calls for which keep is true, in order of arrival, those under way included; a nil keep is all.
func (r *Runtime) Calls(keep func(Call) bool) []Call {
	l := r.calls
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Call
	for i := range l.ring {
		c := *l.ring[(l.next+i)%len(l.ring)]
		if keep == nil || keep(c) {
			out = append(out, c)
		}
	}
	return out
}

// ForgetCalls empties the call log.
func (r *Runtime) ForgetCalls() {
	r.calls.mu.Lock()
	defer r.calls.mu.Unlock()
	r.calls.ring, r.calls.next = nil, 0
}

// Method keeps the calls of one of the methods, for Calls.
func Method(methods ...string) func(Call) bool {
	return func(c Call) bool {
		for _, m := range methods {
			if c.Method == m {
				return true
			}
		}
		return false
	}
}
