package crisim

import (
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Fault makes matching calls misbehave. Empty fields match anything.
type Fault struct {
	Method    string // "CreateContainer"
	Pod       string // UID, "namespace/name" or name
	Container string // its name
	Object    string // ID of a sandbox or container, or an image reference as in the call
	Skip      int    // let that many matching calls pass first
	Count     int    // then act on that many; 0 means all
	Do        Action
}

// Action is what a Fault does; see Fail, Hang, LoseReply, FailAfter, Late, Slow and SlowReply.
type Action struct {
	fail      error
	failAfter error
	hangs     bool
	hang      chan struct{} // closed by Injected.Release
	late      time.Duration
	slow      time.Duration
	slowReply time.Duration
}

// Fail makes the call return an error and do nothing.
func Fail(code codes.Code, message string) Action { return Action{fail: status.Error(code, message)} }

// FailAfter lets the call do its work and return an error nevertheless.
func FailAfter(code codes.Code, message string) Action {
	return Action{failAfter: status.Error(code, message)}
}

// LoseReply lets the call do its work; the caller sees the connection break.
func LoseReply() Action {
	return FailAfter(codes.Unavailable, "error reading from server: EOF")
}

// Hang makes the call wait until its context ends (then it does nothing) or Release is called (then it goes on).
func Hang() Action { return Action{hangs: true} }

// Late makes the work happen d after the call arrived even if the caller is gone by then.
func Late(d time.Duration) Action { return Action{late: d} }

// Slow makes the work begin d later.
func Slow(d time.Duration) Action { return Action{slow: d} }

// SlowReply holds the answer back for d after the work (or the look) is done: for a read, the answer is old.
func SlowReply(d time.Duration) Action { return Action{slowReply: d} }

// Injected is a fault that is in place.
type Injected struct {
	faults *faults
	fault  Fault
	seen   int
	hits   int
	hang   chan struct{}
}

// Inject puts a fault in place. When several match a call, the one injected first that still acts does.
func (r *Runtime) Inject(f Fault) *Injected {
	i := &Injected{faults: &r.faults, fault: f, hang: make(chan struct{})}
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	r.faults.active = append(r.faults.active, i)
	return i
}

// Hits is the number of calls it acted on.
func (i *Injected) Hits() int {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	return i.hits
}

// Release removes the fault and lets the calls go on that hang in it. It may be called more than once.
func (i *Injected) Release() {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	for n, a := range i.faults.active {
		if a == i {
			i.faults.active = append(i.faults.active[:n:n], i.faults.active[n+1:]...)
			close(i.hang)
			return
		}
	}
}

// ClearFaults releases all faults.
func (r *Runtime) ClearFaults() {
	r.faults.mu.Lock()
	all := r.faults.active
	r.faults.mu.Unlock()
	for _, i := range all {
		i.Release()
	}
}

type faults struct {
	mu     sync.Mutex
	active []*Injected
}

func (f *faults) match(t Target) Action {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.active {
		if !i.fault.matches(t) {
			continue
		}
		i.seen++
		if i.seen <= i.fault.Skip || (i.fault.Count > 0 && i.hits >= i.fault.Count) {
			continue
		}
		i.hits++
		do := i.fault.Do
		if do.hangs {
			do.hang = i.hang
		}
		return do
	}
	return Action{}
}

func (f Fault) matches(t Target) bool {
	pod := f.Pod == "" || f.Pod == t.UID || f.Pod == t.Pod || f.Pod == t.Namespace+"/"+t.Pod
	return pod && matchesOne(f.Method, t.Method) && matchesOne(f.Container, t.Container) && matchesOne(f.Object, t.Object)
}

func matchesOne(want, got string) bool { return want == "" || want == got }
