package probe

import (
	"context"
	"net"
	"net/http"
	"strconv"

	"github.com/flowlet/flowlet/internal/nodehttp"
)

// httpGet: whatever keeps a whole answer from arriving is a failure of the
// container's, also while the body is being sent.
func (p *Prober) httpGet(ctx context.Context, t Target) (Outcome, string, error) {
	get := nodehttp.Get{Action: t.Probe.HTTPGet, Container: t.Container, Agent: p.agent()}
	if get.Action.Host == "" {
		var err error
		if get.Host, err = t.host(); err != nil {
			return None, "", err
		}
	}
	req, err := get.Request(ctx)
	if err != nil {
		return None, "", err
	}
	answer, err := p.HTTP.Do(req, t.timeout())
	switch {
	case err != nil:
		return Failure, err.Error(), nil
	case answer.Status < http.StatusOK || answer.Status >= http.StatusBadRequest:
		return Failure, "HTTP probe failed with statuscode: " + strconv.Itoa(answer.Status), nil
	case answer.Status >= http.StatusMultipleChoices: // to another host: it was not followed
		return Warning, "Probe terminated redirects, Response body: " + answer.Body, nil
	}
	return Success, answer.Body, nil
}

func (p *Prober) tcpSocket(ctx context.Context, t Target) (Outcome, string, error) {
	host := t.Probe.TCPSocket.Host
	if host == "" {
		var err error
		if host, err = t.host(); err != nil {
			return None, "", err
		}
	}
	port, err := nodehttp.Port(t.Probe.TCPSocket.Port, t.Container)
	if err != nil {
		return None, "", err
	}
	dialer := nodehttp.Dialer()
	dialer.Timeout = t.timeout()
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return Failure, err.Error(), nil
	}
	_ = conn.Close() // all that was asked is whether it opens
	return Success, "", nil
}
