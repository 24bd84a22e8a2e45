package nodehttp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// MaxBody is how much of an answer's body is read.
	MaxBody = 10 << 10

	maxRedirects     = 10
	handshakeTimeout = 10 * time.Second
	linger           = 1 // seconds
)

// Client sends requests to containers: no proxy, certificates are not
// verified, each request has a connection of its own, and redirects are
// followed on the same host only. It may be used concurrently.
type Client struct {
	transport *http.Transport
}

// New returns a Client. It holds nothing that has to be closed.
func New() *Client {
	return &Client{transport: &http.Transport{
		Proxy:       nil, // not even the one of the environment
		DialContext: Dialer().DialContext,
		// Containers have the certificates that they have, often for no name of theirs.
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the kubelet does the same
		TLSHandshakeTimeout: handshakeTimeout,
		ForceAttemptHTTP2:   true, // a dialer of our own would switch it off
		DisableKeepAlives:   true,
		DisableCompression:  true, // the headers are those that the user wrote
	}}
}

// Response is an answer.
type Response struct {
	Status int
	Body   string // at most MaxBody bytes
}

// Do sends a request; timeout is for all of it, redirects and body included,
// and 0 leaves it to the request's context. A redirect to another host is not
// followed but returned. An error means that there was no whole answer; with a
// Status, that it broke off.
func (c *Client) Do(req *http.Request, timeout time.Duration) (Response, error) {
	client := http.Client{Transport: c.transport, CheckRedirect: sameHost, Timeout: timeout}
	answer, err := client.Do(req)
	if err != nil {
		return Response{}, err //nolint:wrapcheck // it names method and URL
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, MaxBody))
	if err != nil {
		return Response{Status: answer.StatusCode}, fmt.Errorf("reading the answer of %s: %w", req.URL, err)
	}
	return Response{Status: answer.StatusCode, Body: string(body)}, nil
}

var errRedirects = errors.New("stopped after 10 redirects")

func sameHost(req *http.Request, via []*http.Request) error {
	if req.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= maxRedirects {
		return errRedirects
	}
	return nil
}

// Dialer returns a dialer whose connections linger for no more than a second
// after they were closed: thousands of short connections would otherwise use up
// the node's ports.
func Dialer() *net.Dialer {
	return &net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: linger})
		})
		return errors.Join(err, failed)
	}}
}
