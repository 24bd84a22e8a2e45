package remote

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/remotecommand"
	clientspdy "k8s.io/client-go/transport/spdy"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// Exec runs a command in a container with the streams of o, and returns when
// it has ended: with a k8s.io/client-go/util/exec.CodeExitError if its exit
// code is not 0.
func (c *Client) Exec(ctx context.Context, t Target, command []string, o remotecommand.StreamOptions) error {
	q := streams(o)
	q["command"] = command
	return c.stream(ctx, c.url(q, "exec", t.Namespace, t.Pod, string(t.UID), t.Container), o)
}

// Attach connects the streams of o to the process of a container and returns
// when it has ended.
func (c *Client) Attach(ctx context.Context, t Target, o remotecommand.StreamOptions) error {
	return c.stream(ctx, c.url(streams(o), "attach", t.Namespace, t.Pod, string(t.UID), t.Container), o)
}

func streams(o remotecommand.StreamOptions) url.Values {
	q := url.Values{}
	for name, want := range map[string]bool{"input": o.Stdin != nil, "output": o.Stdout != nil, "error": o.Stderr != nil && !o.Tty, "tty": o.Tty} {
		if want {
			q.Set(name, "1")
		}
	}
	return q
}

func (c *Client) stream(ctx context.Context, u *url.URL, o remotecommand.StreamOptions) error {
	if o.Tty {
		o.Stderr = nil // a terminal has one output
	}
	modern, err := remotecommand.NewWebSocketExecutor(c.config(), http.MethodGet, u.String())
	if err != nil {
		return err
	}
	rt, err := c.spdy()
	if err != nil {
		return err
	}
	old, err := remotecommand.NewSPDYExecutorForTransports(rt, clientspdy.NewUpgraderForStreaming(rt), http.MethodPost, u)
	if err != nil {
		return err
	}
	both, err := remotecommand.NewFallbackExecutor(modern, old, httpstream.IsUpgradeFailure)
	if err != nil {
		return err
	}
	// What the library logs, the error says.
	return plain(both.StreamWithContext(klog.NewContext(ctx, logr.Discard()), o))
}

// spdy returns a round tripper, for one use.
func (c *Client) spdy() (*spdy.SpdyRoundTripper, error) {
	return spdy.NewRoundTripperWithConfig(spdy.RoundTripperConfig{
		UpgradeTransport: &http.Transport{DialContext: c.dial}, PingPeriod: 5 * time.Second,
	})
}

// plain takes off an error what the libraries put around what the agent said.
func plain(err error) error {
	if err == nil {
		return nil
	}
	if _, said, ok := strings.Cut(err.Error(), "unable to upgrade connection: "); ok {
		return errors.New(strings.TrimSpace(said))
	}
	return err
}
