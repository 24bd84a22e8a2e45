package remote

import (
	"errors"
	"net/http"

	gorilla "github.com/gorilla/websocket"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/transport/websocket"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// config makes client-go's WebSocket connections go over the socket, for
// which it has no setting: its transport is told what we have connected.
func (c *Client) config() *restclient.Config {
	return &restclient.Config{WrapTransport: func(rt http.RoundTripper) http.RoundTripper {
		if ws, ok := rt.(*websocket.RoundTripper); ok {
			return overSocket{c, ws}
		}
		return rt
	}}
}

// overSocket opens one WebSocket connection and leaves it in ws.
type overSocket struct {
	c  *Client
	ws *websocket.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (o overSocket) RoundTrip(req *http.Request) (*http.Response, error) {
	header := req.Header.Clone()
	protocols := header[wsstream.WebSocketProtocolHeader]
	delete(header, wsstream.WebSocketProtocolHeader)
	size := o.ws.DataBufferSize() + 1024 // beside the data there is the number of its stream
	d := gorilla.Dialer{NetDialContext: o.c.dial, Subprotocols: protocols, ReadBufferSize: size, WriteBufferSize: size}
	u := *req.URL
	u.Scheme = "ws"
	conn, resp, err := d.DialContext(req.Context(), u.String(), header)
	switch {
	case errors.Is(err, gorilla.ErrBadHandshake):
		return nil, &httpstream.UpgradeFailureError{Cause: errors.New(problem(resp))}
	case err != nil:
		return nil, err
	case conn.Subprotocol() == "":
		_ = conn.Close()
		return nil, &httpstream.UpgradeFailureError{Cause: errors.New("the agent knows none of the protocols")}
	}
	o.ws.Conn = conn
	return resp, nil
}
