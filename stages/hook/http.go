package hook

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/nodehttp"
)

// httpGet calls a container's server. That it answers is enough, whatever the
// answer. A server that speaks HTTP where HTTPS was asked for is called again
// without TLS, and then without credentials.
func (h *Hooks) httpGet(ctx context.Context, t Target, action *v1.HTTPGetAction) error {
	get := nodehttp.Get{Action: action, Container: t.Container, Agent: "kube-lifecycle/" + h.Version}
	if action.Host == "" {
		var err error
		if get.Host, err = nodehttp.Host(t.Pod, t.PodIPs, t.NodeIP); err != nil {
			return err //nolint:wrapcheck // Run says what was done
		}
	}
	req, err := get.Request(ctx)
	if err != nil {
		return err //nolint:wrapcheck // Run says what was done
	}
	err = h.call(req)
	if !errors.Is(err, http.ErrSchemeMismatch) {
		return err
	}
	h.event(t, EventFallback, fmt.Sprintf(
		"the %s hook of container %s asks for HTTPS but the server speaks HTTP: called again without TLS", t.Kind, t.Container.Name))
	req = req.Clone(ctx)
	req.URL.Scheme = "http"
	req.Header.Del("Authorization")
	return h.call(req)
}

// call fails when no answer began to come.
func (h *Hooks) call(req *http.Request) error {
	answer, err := h.HTTP.Do(req, 0)
	if answer.Status != 0 {
		return nil //nolint:nilerr // nobody asked for the body
	}
	return err //nolint:wrapcheck // Run says what was done
}
