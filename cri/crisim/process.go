package crisim

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Exit codes and reasons of containerd.
const (
	codeTerminated = 128 + 15
	codeKilled     = 128 + 9
	codeStartError = 128
	codeUnknown    = 255 // the process was gone when the runtime came back

	reasonCompleted  = "Completed"
	reasonError      = "Error"
	reasonOOM        = "OOMKilled"
	reasonStartError = "StartError"
	reasonUnknown    = "Unknown"
)

// process is what a container has beyond its facts while something is going on with it. Guarded by Runtime.mu.
type process struct {
	tasks  []*task
	exited chan struct{} // closed at exit; made by the first who waits
	log    io.WriteCloser

	viewers []*viewer
}

func (c *container) live() *process {
	if c.process == nil {
		c.process = &process{}
	}
	return c.process
}

func (p *process) closeLog() {
	if p.log != nil {
		_ = p.log.Close()
		p.log = nil
	}
}

// failStart leaves a created container exited, as containerd does after an error of StartContainer, also when the caller
// gave up. There is no event.
func (c *container) failStart(err error) {
	if c.state != runtimeapi.ContainerState_CONTAINER_CREATED {
		return
	}
	c.state, c.listed, c.finished = runtimeapi.ContainerState_CONTAINER_EXITED, nil, time.Now().UnixNano()
	c.exitCode, c.reason, c.message = codeStartError, reasonStartError, err.Error()
}

// start runs the process of a created container.
func (r *Runtime) start(c *container) error {
	if err := r.startError(c); err != nil {
		c.failStart(err)
		return err
	}
	c.state, c.listed, c.started = runtimeapi.ContainerState_CONTAINER_RUNNING, nil, time.Now().UnixNano()
	r.publish(runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT, c.id, c.sandbox)
	if c.script == nil {
		return nil
	}
	if e := c.script.Exit; e != nil {
		r.schedule(c, time.Duration(e.After), func() { r.exit(c, e.result()) })
	}
	r.startLog(c)
	return nil
}

func (r *Runtime) startError(c *container) error {
	if !c.sandbox.ready {
		return fmt.Errorf("sandbox container %q is not running", c.sandbox.id)
	}
	if c.script != nil && c.script.Start != nil {
		return fmt.Errorf("failed to create containerd task: failed to create shim task: OCI runtime create failed: %s: unknown", c.script.Start.Error)
	}
	if err := r.openLog(c); err != nil {
		return fmt.Errorf("failed to create containerd task: failed to create container loggers: %w", err)
	}
	return nil
}

// schedule runs f with r.mu held in d, unless the process has ended by then.
func (r *Runtime) schedule(c *container, d time.Duration, f func()) {
	p := c.live()
	p.tasks = append(p.tasks, r.after(d, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if c.state == runtimeapi.ContainerState_CONTAINER_RUNNING {
			f()
		}
	}))
}

// Exit is how a process ends.
type Exit struct {
	Code    int32
	Signal  int32 // when not 0 the code is 128 + Signal
	OOM     bool  // killed for memory: code 137, reason OOMKilled
	Message string
}

func (e *ExitScript) result() Exit { return Exit{Code: e.Code, OOM: e.OOM, Message: e.Message} }

func (e Exit) codeAndReason() (int32, string) {
	switch {
	case e.OOM:
		return codeKilled, reasonOOM
	case e.Signal != 0:
		return 128 + e.Signal, reasonError
	case e.Code == 0:
		return 0, reasonCompleted
	default:
		return e.Code, reasonError
	}
}

// exit ends a running process.
func (r *Runtime) exit(c *container, e Exit) {
	code, reason := e.codeAndReason()
	r.record(c, code, reason, e.Message)
	r.publish(runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT, c.id, c.sandbox)
}

func (r *Runtime) record(c *container, code int32, reason, message string) {
	c.state, c.listed, c.finished = runtimeapi.ContainerState_CONTAINER_EXITED, nil, time.Now().UnixNano()
	c.exitCode, c.reason, c.message = code, reason, message
	p := c.process
	if p == nil {
		return
	}
	for _, t := range p.tasks {
		r.cancel(t)
	}
	p.closeLog()
	for _, v := range p.viewers {
		close(v.lines)
	}
	if p.exited != nil {
		close(p.exited)
	}
	c.process = nil
}

// terminate sends the stop signal, once however often it is asked for.
func (r *Runtime) terminate(c *container) {
	if c.termSent {
		return
	}
	c.termSent = true
	if c.script == nil || c.script.Term == nil {
		r.exit(c, Exit{Code: codeTerminated})
		return
	}
	t := c.script.Term
	switch {
	case t.Ignore:
	case t.After > 0:
		r.schedule(c, time.Duration(t.After), func() { r.exit(c, Exit{Code: t.Code}) })
	default:
		r.exit(c, Exit{Code: t.Code})
	}
}

// alive tells a container that has to be stopped: it runs, or the runtime does not know.
func (c *container) alive() bool {
	return c.state == runtimeapi.ContainerState_CONTAINER_RUNNING || c.state == runtimeapi.ContainerState_CONTAINER_UNKNOWN
}

// kill sends SIGKILL. Of a container in an unknown state nothing is left to be killed.
func (r *Runtime) kill(c *container) {
	if c.state == runtimeapi.ContainerState_CONTAINER_UNKNOWN {
		r.record(c, codeUnknown, reasonUnknown, "")
		r.publish(runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT, c.id, c.sandbox)
		return
	}
	killed := Exit{Code: codeKilled}
	if c.script == nil || c.script.Kill == nil {
		r.exit(c, killed)
		return
	}
	k := c.script.Kill
	switch {
	case k.Ignore:
	case k.After > 0:
		r.schedule(c, time.Duration(k.After), func() { r.exit(c, killed) })
	default:
		r.exit(c, killed)
	}
}

// awaitExit waits with r.mu released until the process has ended or ctx has.
func (r *Runtime) awaitExit(ctx context.Context, c *container) error {
	if c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil
	}
	p := c.live()
	if p.exited == nil {
		p.exited = make(chan struct{})
	}
	r.mu.Unlock()
	defer r.mu.Lock()
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

func (c *container) logPath() string {
	dir, file := c.sandbox.config.GetLogDirectory(), c.config.GetLogPath()
	if dir == "" || file == "" {
		return ""
	}
	return filepath.Join(dir, file)
}
