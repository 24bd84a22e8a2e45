package remote

import (
	"context"
	"io"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/portforward"
	clientspdy "k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
)

// Forward listens on the loopback addresses, IPv4 and IPv6, and forwards what
// connects to the pod, until ctx ends or the connection to the pod breaks.
// A port is "LOCAL:REMOTE", ":REMOTE" for any local port, or one number for
// both. Where it listens is printed on out, what goes wrong with a connection
// on errOut.
func (c *Client) Forward(ctx context.Context, t Target, ports []string, out, errOut io.Writer) error {
	u := c.url(nil, "portForward", t.Namespace, t.Pod, string(t.UID))
	modern, err := portforward.NewSPDYOverWebsocketDialerForStreaming(u, c.config())
	if err != nil {
		return err
	}
	rt, err := c.spdy()
	if err != nil {
		return err
	}
	old := clientspdy.NewDialerForStreaming(clientspdy.NewUpgraderForStreaming(rt), &http.Client{Transport: rt}, http.MethodPost, u)
	both := portforward.NewFallbackDialerForStreaming(modern, old, httpstream.IsUpgradeFailure)
	ctx = klog.NewContext(ctx, logr.New(errorLines{errOut}))
	f, err := portforward.NewOnAddressesForStreamingWithContext(ctx, both, []string{"localhost"}, ports, make(chan struct{}), out, errOut)
	if err != nil {
		return err
	}
	return plain(f.ForwardPorts())
}

// errorLines prints the errors that the library can only log.
type errorLines struct{ to io.Writer }

// Init implements logr.LogSink.
func (errorLines) Init(logr.RuntimeInfo) {}

// Enabled implements logr.LogSink.
func (errorLines) Enabled(int) bool { return false }

// Info implements logr.LogSink.
func (errorLines) Info(int, string, ...any) {}

// Error implements logr.LogSink.
func (e errorLines) Error(err error, text string, _ ...any) {
	if err != nil {
		text += ": " + err.Error()
	}
	_, _ = io.WriteString(e.to, text+"\n")
}

// WithValues implements logr.LogSink.
func (e errorLines) WithValues(...any) logr.LogSink { return e }

// WithName implements logr.LogSink.
func (e errorLines) WithName(string) logr.LogSink { return e }
