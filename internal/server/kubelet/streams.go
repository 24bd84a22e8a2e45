package kubelet

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	proxy "github.com/flowlet/flowlet/cri/streaming"
	"github.com/flowlet/flowlet/internal/podstore"
)

func (a *API) exec(w http.ResponseWriter, r *http.Request, v podstore.View) {
	a.command(w, r, v, func(id string, o *remotecommand.Options) (string, error) {
		return a.Streams.Exec(r.Context(), &runtimeapi.ExecRequest{
			ContainerId: id, Cmd: r.URL.Query()["command"], Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Tty: o.TTY,
		})
	})
}

func (a *API) attach(w http.ResponseWriter, r *http.Request, v podstore.View) {
	a.command(w, r, v, func(id string, o *remotecommand.Options) (string, error) {
		return a.Streams.Attach(r.Context(), &runtimeapi.AttachRequest{
			ContainerId: id, Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Tty: o.TTY,
		})
	})
}

// command proxies a stream to a container of the pod; prepare gets its URL.
func (a *API) command(w http.ResponseWriter, r *http.Request, v podstore.View, prepare func(id string, o *remotecommand.Options) (string, error)) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	id, err := running(v, r.PathValue("container"))
	if err != nil {
		fail(w, http.StatusInternalServerError, "%v", err)
		return
	}
	at, err := prepare(id, options)
	if err != nil {
		refuse(w, err)
		return
	}
	h, err := proxy.Command(at, *options)
	if err != nil {
		refuse(w, err)
		return
	}
	h.ServeHTTP(w, r)
}

func (a *API) portForward(w http.ResponseWriter, r *http.Request, v podstore.View) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	sandbox, ok := v.State.Sandbox()
	if !ok {
		fail(w, http.StatusInternalServerError, "failed to find sandboxID for pod %s", v.State.Identity.Namespace+"/"+v.State.Identity.Name)
		return
	}
	at, err := a.Streams.PortForward(r.Context(), &runtimeapi.PortForwardRequest{PodSandboxId: sandbox.ID, Port: options.Ports})
	if err != nil {
		refuse(w, err)
		return
	}
	h, err := proxy.Ports(at)
	if err != nil {
		refuse(w, err)
		return
	}
	h.ServeHTTP(w, r)
}

// run runs a command without streams and answers with all that it printed.
func (a *API) run(w http.ResponseWriter, r *http.Request, v podstore.View) {
	id, err := running(v, r.PathValue("container"))
	if err != nil {
		fail(w, http.StatusInternalServerError, "%v", err)
		return
	}
	command := strings.Split(r.FormValue("cmd"), " ")
	result, err := a.Commands.ExecSync(r.Context(), id, command, 0)
	switch {
	case err != nil:
		fail(w, http.StatusInternalServerError, "%v", err)
	case result.ExitCode != 0:
		fail(w, http.StatusInternalServerError, "command '%s' exited with %d: %s", strings.Join(command, " "), result.ExitCode, result.Stderr)
	default:
		w.Header().Set("Content-Type", "application/json") // as the kubelet, whatever was printed
		_, _ = bytes.NewReader(append(result.Stdout, result.Stderr...)).WriteTo(w)
	}
}

// running is the ID of the container of that name that runs.
func running(v podstore.View, name string) (string, error) {
	for _, c := range v.State.Containers {
		if c.Name == name && c.Live() {
			return c.ID, nil
		}
	}
	return "", fmt.Errorf("container not found (%q)", name)
}

// refuse says what the runtime said, with the status that goes with it.
func refuse(w http.ResponseWriter, err error) {
	_ = streaming.WriteError(err, w)
}
