package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/internal/crifact"
	"github.com/flowlet/flowlet/internal/nodehttp"
	"github.com/flowlet/flowlet/internal/pod"
)

// tries is how often a check is tried at once that cannot be made.
const tries = 3

// maxOutput is how many bytes of what a check said are kept.
const maxOutput = 10 << 10

// Executor runs commands in containers.
type Executor interface {
	// ExecSync runs a command to its end. One that ends with a code other
	// than 0 is no error; one that was still running at timeout is
	// context.DeadlineExceeded, or the gRPC status of that meaning.
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (*runtimeapi.ExecSyncResponse, error)
}

// Config holds the collaborators of a Prober.
type Config struct {
	Exec   Executor
	HTTP   *nodehttp.Client
	Events pod.Recorder
	// Version is the Kubernetes version in User-Agent, as "1.37".
	Version string
	// Checked is told of every check that was made. Optional; called
	// concurrently.
	Checked func(Target, Result)
}

// Prober runs checks. Its methods may be called concurrently.
type Prober struct {
	Config
}

// New returns a Prober.
func New(c Config) *Prober {
	return &Prober{Config: c}
}

func (p *Prober) agent() string { return "kube-probe/" + p.Version }

// Target is what is checked.
type Target struct {
	Pod       *v1.Pod
	Container *v1.Container
	ID        string   // of the container in the runtime
	PodIPs    []string // primary first
	NodeIP    string   // where a pod on the node's network is called
	Kind      Kind
	Probe     *v1.Probe
}

// timeout of one try.
func (t Target) timeout() time.Duration { return seconds(t.Probe.TimeoutSeconds, 1) }

// Result is the result of one check.
type Result struct {
	ID      string // of the container
	Outcome Outcome
	Output  string    // what the check said, or why there is no result; at most 10 KiB
	Began   time.Time // after all waiting for a slot
	Took    time.Duration
}

// Check runs one check, with events about what is not well. It takes as long
// as the probe's timeout, three times that where the check cannot be made. The
// timeout runs from the call: time spent in a queue before it is not the
// container's. When ctx ends first, nothing was learnt: the outcome is None.
func (p *Prober) Check(ctx context.Context, t Target) Result {
	r := Result{ID: t.ID, Began: time.Now()}
	var output string
	var err error
	for range tries {
		if r.Outcome, output, err = p.try(ctx, t); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		r.Outcome, output = Errored, err.Error()
	}
	if ctx.Err() != nil {
		r.Outcome, output = None, context.Cause(ctx).Error()
	}
	r.Output, r.Took = limited(output), time.Since(r.Began)
	p.report(t, r)
	return r
}

var errNoHandler = errors.New("the probe names nothing to do: set exec, httpGet, tcpSocket or grpc")

// try returns an error when the check could not be made.
func (p *Prober) try(ctx context.Context, t Target) (Outcome, string, error) {
	switch {
	case t.Probe.Exec != nil:
		return p.exec(ctx, t)
	case t.Probe.HTTPGet != nil:
		return p.httpGet(ctx, t)
	case t.Probe.TCPSocket != nil:
		return p.tcpSocket(ctx, t)
	case t.Probe.GRPC != nil:
		return p.grpc(ctx, t)
	}
	return None, "", errNoHandler
}

func (p *Prober) report(t Target, r Result) {
	reason, message := "Unhealthy", ""
	switch r.Outcome {
	case Failure:
		message = "probe failed: " + r.Output
	case Errored:
		message = "probe errored and resulted in Failure state: " + r.Output
	case Warning:
		reason, message = "ProbeWarning", "probe warning: "+r.Output
	case None, Success:
	}
	if message != "" && p.Events != nil {
		p.Events.Event(t.Pod, crifact.FieldPath(t.Pod, t.Container.Name), v1.EventTypeWarning, reason, t.Kind.title()+" "+message)
	}
	if p.Checked != nil && r.Outcome != None {
		p.Checked(t, r)
	}
}

// limited cuts a text, and only between characters.
func limited(text string) string {
	if len(text) > maxOutput {
		text = text[:maxOutput]
	}
	return strings.ToValidUTF8(text, "")
}

// seconds is a field of a probe; one that was left open has the API's default.
func seconds(field, missing int32) time.Duration {
	if field <= 0 {
		field = missing
	}
	return time.Duration(field) * time.Second
}

// host is where a network probe that names no host goes to.
func (t Target) host() (string, error) {
	host, err := nodehttp.Host(t.Pod, t.PodIPs, t.NodeIP)
	if err != nil {
		return "", fmt.Errorf("probing container %s: %w", t.Container.Name, err)
	}
	return host, nil
}
