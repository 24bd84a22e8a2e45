package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Client reaches the pods of an agent. It may be used concurrently.
type Client struct {
	path string // of the socket
	http http.Client
}

// NewClient returns a client of the agent that answers on that socket.
func NewClient(socket string) *Client {
	c := &Client{path: socket}
	c.http.Transport = &http.Transport{DialContext: c.dial, DisableKeepAlives: true}
	return c
}

// Target is what is meant of a pod. Without a UID it is the pod that has the
// name now.
type Target struct {
	Namespace, Pod string
	UID            types.UID
	Container      string // not for ports
}

func (c *Client) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", c.path)
}

func (c *Client) url(q url.Values, kind string, parts ...string) *url.URL {
	u := &url.URL{Scheme: "http", Host: "flowlet", RawQuery: q.Encode()}
	var filled []string
	for _, p := range parts {
		if p != "" {
			filled = append(filled, p)
		}
	}
	return u.JoinPath(append([]string{kind}, filled...)...)
}

// Logs opens the log of a container. q has the parameters of
// v1.PodLogOptions, and stream. The caller closes it; it ends with an error
// when the agent breaks off, or with ctx.
func (c *Client) Logs(ctx context.Context, t Target, q url.Values) (io.ReadCloser, error) {
	u := c.url(q, "containerLogs", t.Namespace, t.Pod, t.Container)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, errors.New(problem(resp))
	}
	return resp.Body, nil
}

// problem is the text of a refusal.
func problem(resp *http.Response) string {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	text := strings.TrimSpace(string(body))
	var asJSON struct{ Message string }
	if json.Unmarshal(body, &asJSON) == nil && asJSON.Message != "" {
		text = asJSON.Message
	}
	if err != nil || text == "" {
		text = fmt.Sprintf("the agent answered %s", resp.Status)
	}
	return text
}
