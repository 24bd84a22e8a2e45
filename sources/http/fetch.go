package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"net/url"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/flowlet/flowlet/internal/manifest"
)

// timeout bounds one request with its answer, as in the kubelet.
const timeout = 10 * time.Second

// Client sends requests. *http.Client of net/http fits.
type Client interface {
	// Do ends when the request's context does. The caller closes the body.
	Do(*nethttp.Request) (*nethttp.Response, error)
}

// validators say which version of an answer is known.
type validators struct{ etag, modified string }

// answer is what the URL served.
type answer struct {
	unchanged bool // the same as last time; then there is no body
	body      []byte
	version   validators
}

// fetch asks the URL once. Errors name neither secrets of the URL nor headers.
func (s *Source) fetch(ctx context.Context, known validators) (a answer, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
	defer cancel()
	req, err := s.request(ctx, known)
	if err != nil {
		return answer{}, err
	}
	resp, err := s.cfg.Client.Do(req)
	if err != nil {
		return answer{}, s.failed(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == nethttp.StatusNotModified && known != (validators{}):
		return answer{unchanged: true}, nil
	case resp.StatusCode != nethttp.StatusOK:
		return answer{}, fmt.Errorf("%s: the server answered %d %s", s.path, resp.StatusCode, nethttp.StatusText(resp.StatusCode))
	}
	a.version = validators{etag: resp.Header.Get("ETag"), modified: resp.Header.Get("Last-Modified")}
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, manifest.MaxBytes+1))
	switch {
	case err != nil:
		return answer{}, s.failed(ctx, err)
	case len(a.body) > manifest.MaxBytes:
		return answer{}, fmt.Errorf("%s: the answer is larger than %d MiB", s.path, manifest.MaxBytes>>20)
	}
	return a, nil
}

func (s *Source) request(ctx context.Context, known validators) (*nethttp.Request, error) {
	req, err := nethttp.NewRequestWithContext(ctx, nethttp.MethodGet, s.cfg.URL, nil)
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	for name, values := range s.cfg.Header {
		for _, v := range values {
			req.Header.Add(name, v)
		}
	}
	req.Host = req.Header.Get("Host") // empty: the URL's
	for name, value := range map[string]string{"If-None-Match": known.etag, "If-Modified-Since": known.modified} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	return req, nil
}

// failed drops the URL that net/http puts into its errors, and tells why the
// context ended.
func (s *Source) failed(ctx context.Context, err error) error {
	var in *url.Error
	if errors.As(err, &in) {
		err = in.Err
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("%s: %w", s.path, err)
}

// shown is a URL without what may be secret in it: user, password and query.
func shown(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "the static pod URL"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// newClient sends the extra headers, which may be secrets, to no other server
// than the one that they are meant for.
func newClient(extra nethttp.Header) *nethttp.Client {
	const most = 10 // redirects, as net/http's own limit
	return &nethttp.Client{
		Transport: nethttp.DefaultTransport.(*nethttp.Transport).Clone(), //nolint:forcetypeassert // documented
		CheckRedirect: func(req *nethttp.Request, via []*nethttp.Request) error {
			if len(via) >= most {
				return fmt.Errorf("more than %d redirects", most)
			}
			if from := via[0].URL; req.URL.Host != from.Host || req.URL.Scheme != from.Scheme {
				for name := range extra {
					req.Header.Del(name)
				}
			}
			return nil
		},
	}
}

// load reads the pods of an answer. None at all is an error unless the server
// says so.
func load(file string, body []byte, o manifest.Origin) ([]*manifest.Static, error) {
	trimmed := bytes.TrimSpace(body)
	switch {
	case len(trimmed) == 0:
		return nil, fmt.Errorf("%s: the answer is empty; serve [] to remove all pods", file)
	case isEmptyArray(trimmed):
		return nil, nil
	}
	pods, err := manifest.LoadAll(file, body, o)
	if err != nil || len(pods) > 0 {
		return pods, err
	}
	var list map[string]json.RawMessage
	_ = yaml.Unmarshal(body, &list) // LoadAll has read it
	if _, ok := list["items"]; !ok {
		return nil, fmt.Errorf("%s: a list without items; serve items: [] to remove all pods", file)
	}
	return nil, nil
}

func isEmptyArray(text []byte) bool {
	var array []json.RawMessage
	return text[0] == '[' && json.Unmarshal(text, &array) == nil && len(array) == 0
}
