package hook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/nodehttp"
	"github.com/flowlet/flowlet/internal/pod"
)

// Kind is when a hook runs.
type Kind string

// The kinds of hooks.
const (
	PostStart Kind = "postStart" // beside the container's entrypoint
	PreStop   Kind = "preStop"   // before the container is told to end
)

// Reasons of events.
const (
	EventPostStart = "FailedPostStartHook"
	EventPreStop   = "FailedPreStopHook"
	EventFallback  = "LifecycleHTTPFallback"
)

// ReasonPostStart is the waiting reason of a container whose postStart hook
// failed.
const ReasonPostStart = "PostStartHookError"

// ErrCut is in the chain of the error of a hook that did not finish in its time.
var ErrCut = errors.New("it did not finish in the time it had")

// ErrUnended is in the chain of the error of a hook whose end nobody will tell:
// the agent is stopping, or the runtime went away. It is no failure, and the
// hook is to be run again.
var ErrUnended = errors.New("its end is not known")

// Executor runs commands in containers.
type Executor interface {
	// ExecSync runs a command to its end; with timeout 0 for as long as ctx
	// lasts. One that ends with a code other than 0 is no error.
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (*runtimeapi.ExecSyncResponse, error)
}

// Config holds the collaborators of Hooks.
type Config struct {
	Exec   Executor
	HTTP   *nodehttp.Client
	Events pod.Recorder
	// Version is the Kubernetes version in User-Agent, as "1.37".
	Version string
}

// Hooks runs hooks. Its methods may be called concurrently.
type Hooks struct{ Config }

// New returns Hooks.
func New(c Config) *Hooks { return &Hooks{Config: c} }

// Target is the container whose hook it is.
type Target struct {
	Pod       *v1.Pod
	Container *v1.Container
	ID        string   // of the container in the runtime
	PodIPs    []string // primary first
	NodeIP    string   // where a pod on the node's network is called
	Kind      Kind
}

// Run runs a hook to its end, or to that of ctx, which is the only limit of its
// time. A failure is told in an event, and its error carries the reason:
// PostStartHookError or FailedPreStopHook. A hook that is still running when
// ctx ends is left alone and counts as failed (ErrCut); one whose end is not
// known (ErrUnended) is told in no event.
func (h *Hooks) Run(ctx context.Context, t Target, handler *v1.LifecycleHandler) error {
	err := h.run(ctx, t, handler)
	if err == nil {
		return nil
	}
	unended := crifact.Unreachable(err)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, dag.ErrStopping):
		unended, err = true, cause
	case cause != nil:
		unended, err = false, fmt.Errorf("%w: %w", ErrCut, cause)
	}
	if unended {
		err = fmt.Errorf("%w: %w", ErrUnended, err)
	}
	err = fmt.Errorf("%s hook of container %s: %w", t.Kind, t.Container.Name, err)
	if !unended {
		h.failed(t, err)
	}
	return pod.WithReason(t.reason(), err)
}

func (t Target) reason() string {
	if t.Kind == PostStart {
		return ReasonPostStart
	}
	return EventPreStop
}

// failed tells a failure in an event. What a command or a server said stays
// out of it: whoever may read events need not be allowed to read that.
func (h *Hooks) failed(t Target, err error) {
	reason, message := EventPreStop, "PreStopHook failed"
	if t.Kind == PostStart {
		reason, message = EventPostStart, "PostStartHook failed"
	}
	if errors.Is(err, ErrCut) {
		message += ": " + ErrCut.Error()
	}
	h.event(t, reason, message)
}

func (h *Hooks) event(t Target, reason, message string) {
	if h.Events != nil {
		h.Events.Event(t.Pod, crifact.FieldPath(t.Pod, t.Container.Name), v1.EventTypeWarning, reason, message)
	}
}

var (
	errTCP     = errors.New("tcpSocket is no lifecycle hook: use exec, httpGet or sleep")
	errNothing = errors.New("it names nothing to do: set exec, httpGet or sleep")
)

func (h *Hooks) run(ctx context.Context, t Target, handler *v1.LifecycleHandler) error {
	switch {
	case handler.Exec != nil:
		return h.exec(ctx, t, handler.Exec.Command)
	case handler.HTTPGet != nil:
		return h.httpGet(ctx, t, handler.HTTPGet)
	case handler.Sleep != nil:
		return sleep(ctx, time.Duration(handler.Sleep.Seconds)*time.Second)
	case handler.TCPSocket != nil:
		return errTCP
	}
	return errNothing
}

// maxOutput is how many bytes of a failed command's output its error has.
const maxOutput = 1 << 10

func (h *Hooks) exec(ctx context.Context, t Target, command []string) error {
	answer, err := h.Exec.ExecSync(ctx, t.ID, command, 0)
	if err != nil {
		return err //nolint:wrapcheck // Run says what was done
	}
	if code := answer.GetExitCode(); code != 0 {
		output := string(answer.GetStdout()) + string(answer.GetStderr())
		output = strings.ToValidUTF8(output[:min(len(output), maxOutput)], "")
		return fmt.Errorf("command %q exited with %d: %s", strings.Join(command, " "), code, output)
	}
	return nil
}

// sleep waits d, or until ctx ends; 0 or less is no wait.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
