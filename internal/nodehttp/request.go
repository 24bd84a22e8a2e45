package nodehttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ErrNoIP is returned for a pod that has no address yet.
var ErrNoIP = errors.New("the pod has no IP")

// Host returns where a pod is called when its spec names no host: its primary
// address, and for a pod on the node's network the node's.
func Host(p *v1.Pod, podIPs []string, nodeIP string) (string, error) {
	switch {
	case p.Spec.HostNetwork && nodeIP != "":
		return nodeIP, nil
	case len(podIPs) > 0:
		return podIPs[0], nil
	}
	return "", ErrNoIP
}

// Port returns the number that a port reference of a container means: a
// number, the name of one of its ports, or a number in quotes.
func Port(ref intstr.IntOrString, c *v1.Container) (int, error) {
	port := ref.IntValue()
	if ref.Type == intstr.String {
		if i := slices.IndexFunc(c.Ports, func(p v1.ContainerPort) bool { return p.Name == ref.StrVal }); i >= 0 {
			port = int(c.Ports[i].ContainerPort)
		}
		if port == 0 {
			return 0, fmt.Errorf("port %q: container %s has no port of that name", ref.StrVal, c.Name)
		}
	}
	if problems := validation.IsValidPortNum(port); problems != nil {
		return 0, fmt.Errorf("port %d of container %s: %s", port, c.Name, problems[0])
	}
	return port, nil
}

// Get is a request as a container's spec has it.
type Get struct {
	Action    *v1.HTTPGetAction
	Container *v1.Container
	Host      string // where Action names none
	Agent     string // User-Agent where Action names none
}

// Request returns the request; it ends with ctx.
func (g Get) Request(ctx context.Context) (*http.Request, error) {
	port, err := Port(g.Action.Port, g.Container)
	if err != nil {
		return nil, err
	}
	host := g.Action.Host
	if host == "" {
		host = g.Host
	}
	if host == "" {
		return nil, ErrNoIP
	}
	target, err := url.Parse(g.Action.Path)
	if err != nil {
		target = &url.URL{Path: g.Action.Path} // whatever it is, the server is asked for it
	}
	target.Scheme = strings.ToLower(string(g.Action.Scheme))
	if target.Scheme == "" {
		target.Scheme = "http"
	}
	target.Host = net.JoinHostPort(host, strconv.Itoa(port))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("making the request of container %s: %w", g.Container.Name, err)
	}
	req.Header = g.headers()
	req.Host = req.Header.Get("Host")
	return req, nil
}

// headers are the user's and, where they leave them open, ours. An empty
// header takes ours away.
func (g Get) headers() http.Header {
	h := http.Header{}
	for _, own := range g.Action.HTTPHeaders {
		h.Add(own.Name, own.Value)
	}
	if _, set := h["User-Agent"]; !set {
		h.Set("User-Agent", g.Agent)
	}
	if _, set := h["Accept"]; !set {
		h.Set("Accept", "*/*")
	} else if h.Get("Accept") == "" {
		h.Del("Accept")
	}
	return h
}
