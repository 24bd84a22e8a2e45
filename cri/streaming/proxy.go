package streaming

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/proxy"
	upgrade "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// Command returns a handler that proxies one exec or attach to the URL that
// the runtime gave for it, and returns when the stream has ended.
func Command(runtimeURL string, o remotecommand.Options) (http.Handler, error) {
	to, err := parse(runtimeURL)
	if err != nil {
		return nil, err
	}
	streams := upgrade.Options{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Tty: o.TTY}
	return choose(to, func(t http.RoundTripper) http.Handler { return upgrade.NewStreamTranslatorHandler(to, t, 0, streams) },
		wsstream.IsWebSocketRequestWithStreamCloseProtocol), nil
}

// Ports returns a handler that proxies one port-forward, with any number of
// connections in it, to the URL that the runtime gave for it.
func Ports(runtimeURL string) (http.Handler, error) {
	to, err := parse(runtimeURL)
	if err != nil {
		return nil, err
	}
	return choose(to, func(t http.RoundTripper) http.Handler { return upgrade.NewTunnelingHandler(passThrough(to, t)) },
		wsstream.IsWebSocketRequestWithTunnelingProtocol), nil
}

func parse(runtimeURL string) (*url.URL, error) {
	to, err := url.Parse(runtimeURL)
	if err != nil || to.Host == "" {
		return nil, fmt.Errorf("the runtime's streaming URL %q makes no sense", runtimeURL)
	}
	return to, nil
}

// choose translates the requests that the runtime would not understand.
func choose(to *url.URL, translator func(http.RoundTripper) http.Handler, translated func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The libraries log what they carry when it does not get through.
		r = r.WithContext(klog.NewContext(r.Context(), logr.Discard()))
		t := &http.Transport{DialContext: dialer(r.Context())}
		upgrade.NewTranslatingHandler(passThrough(to, t), translator(t), translated).ServeHTTP(w, r)
	})
}

func passThrough(to *url.URL, t http.RoundTripper) http.Handler {
	return proxy.NewUpgradeAwareHandler(to, t, false, true, responder{})
}

// dialer makes connections that are closed when the request's context ends.
func dialer(request context.Context) func(context.Context, string, string) (net.Conn, error) {
	d := net.Dialer{Timeout: 30 * time.Second}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := d.DialContext(ctx, network, address)
		if err == nil {
			context.AfterFunc(request, func() { _ = c.Close() })
		}
		return c, err
	}
}

// responder answers requests that could not be passed on.
type responder struct{}

// Error implements proxy.ErrorResponder.
func (responder) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusInternalServerError)
}
