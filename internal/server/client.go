package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"syscall"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/journal"
)

// Client asks an agent over its local socket.
type Client struct {
	path string
	http http.Client
}

// NewClient returns a client of the agent that has that root directory.
func NewClient(root string) *Client {
	path := filepath.Join(root, SocketName)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	return &Client{path: path, http: http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Pods returns all pods.
func (c *Client) Pods(ctx context.Context) (out v1.PodList, err error) {
	return out, c.get(ctx, "/v1/pods", nil, &out)
}

// Files returns what the agent makes of the manifest files.
func (c *Client) Files(ctx context.Context) (out []File, err error) {
	return out, c.get(ctx, "/v1/files", nil, &out)
}

// Node returns what the agent says about itself.
func (c *Client) Node(ctx context.Context) (out Node, err error) {
	return out, c.get(ctx, "/v1/node", nil, &out)
}

// Policy returns the class table.
func (c *Client) Policy(ctx context.Context) (out Policy, err error) {
	return out, c.get(ctx, "/v1/policy", nil, &out)
}

// Pod returns one pod.
func (c *Client) Pod(ctx context.Context, ref string) (out Detail, err error) {
	return out, c.get(ctx, "/v1/pod", url.Values{"pod": {ref}}, &out)
}

// Why returns what blocks a pod.
func (c *Client) Why(ctx context.Context, ref string) (out explain.Report, err error) {
	return out, c.get(ctx, "/v1/why", url.Values{"pod": {ref}}, &out)
}

// Dag returns a drawing of a pod's graph.
func (c *Client) Dag(ctx context.Context, ref string, f explain.Format) (out string, err error) {
	return out, c.get(ctx, "/v1/dag", url.Values{"pod": {ref}, "format": {string(f)}}, &out)
}

// Trace returns the newest episode of a kind, or of any kind if that is empty.
func (c *Client) Trace(ctx context.Context, ref, kind string) (out explain.Trace, err error) {
	return out, c.get(ctx, "/v1/trace", url.Values{"pod": {ref}, "kind": {kind}}, &out)
}

// WhyNode returns what of the node is in the way of its pods.
func (c *Client) WhyNode(ctx context.Context) (out NodeReport, err error) {
	return out, c.get(ctx, "/v1/why-node", nil, &out)
}

// Journal returns what is remembered of a pod's past.
func (c *Client) Journal(ctx context.Context, ref string) (out journal.Log, err error) {
	return out, c.get(ctx, "/v1/journal", url.Values{"pod": {ref}}, &out)
}

// Plan returns what a manifest at that path would make happen.
func (c *Client) Plan(ctx context.Context, path string, data []byte) (out explain.Plans, err error) {
	return out, c.do(ctx, http.MethodPost, "/v1/plan?"+url.Values{"path": {path}}.Encode(), data, &out)
}

// PlanRemoval returns what would happen if there were no manifest at that path.
func (c *Client) PlanRemoval(ctx context.Context, path string) (out explain.Plans, err error) {
	return out, c.do(ctx, http.MethodPost, "/v1/plan?"+url.Values{"path": {path}, "remove": {""}}.Encode(), nil, &out)
}

func (c *Client) get(ctx context.Context, path string, q url.Values, out any) error {
	return c.do(ctx, http.MethodGet, path+"?"+q.Encode(), nil, out)
}

func (c *Client) do(ctx context.Context, method, path string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://flowlet"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.Unreachable(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		var p Problem
		if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&p); err != nil || p.Error == "" {
			return fmt.Errorf("the agent answered %s", resp.Status)
		}
		return errors.New(p.Error)
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("reading the agent's answer: %w", err)
	}
	return nil
}

// Transport returns the way to the agent, for requests to any host.
func (c *Client) Transport() http.RoundTripper { return c.http.Transport }

// Unreachable says what an error of Transport means, and the way out.
func (c *Client) Unreachable(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no agent answers on %s: is `flowlet run` running, with the same --root-dir?", c.path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s may be opened by the agent's user only: try as root", c.path)
	}
	return fmt.Errorf("asking the agent on %s: %w", c.path, err)
}
