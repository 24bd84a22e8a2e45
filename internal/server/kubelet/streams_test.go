package kubelet_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/server/remote"
)

func TestExec(t *testing.T) {
	n := newNode(t)
	n.onSim()
	n.serve()
	tests := map[string]struct {
		command, in, out, err string
		code                  int
	}{
		"output":    {command: "echo a b", out: "a b\n"},
		"input":     {command: "cat", in: strings.Repeat("0123456789", 20_000), out: strings.Repeat("0123456789", 20_000)},
		"exit code": {command: "fails", out: "out", err: "err", code: 4},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			err := n.client.Exec(t.Context(), target, strings.Fields(tt.command), remotecommand.StreamOptions{Stdin: strings.NewReader(tt.in), Stdout: &out, Stderr: &errOut})
			if tt.code == 0 {
				require.NoError(t, err)
			} else {
				code, ok := errors.AsType[exec.CodeExitError](err)
				require.True(t, ok, "%v", err)
				require.Equal(t, tt.code, code.ExitStatus())
			}
			require.Equal(t, tt.out, out.String())
			require.Equal(t, tt.err, errOut.String())
		})
	}
}

type sizes chan remotecommand.TerminalSize

func (s sizes) Next() *remotecommand.TerminalSize {
	size, ok := <-s
	if !ok {
		return nil
	}
	return &size
}

func TestExecOnATerminal(t *testing.T) {
	n := newNode(t)
	n.onSim()
	n.serve()
	q := make(sizes, 1)
	q <- remotecommand.TerminalSize{Width: 132, Height: 43}
	defer close(q)
	var out bytes.Buffer
	withUID := target
	withUID.UID = "u1"
	err := n.client.Exec(t.Context(), withUID, []string{"size"}, remotecommand.StreamOptions{Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard, Tty: true, TerminalSizeQueue: q})
	require.NoError(t, err)
	require.Equal(t, "43 132\n", out.String())
}

// older is a client over TCP, as an API server's is, that speaks one protocol.
func (n *node) older(t *testing.T, protocol string, path string) remotecommand.Executor {
	t.Helper()
	ts := httptest.NewServer(n.api.Handler())
	t.Cleanup(ts.Close)
	u, err := url.Parse(ts.URL + path)
	require.NoError(t, err)
	var e remotecommand.Executor
	if protocol == "SPDY" {
		e, err = remotecommand.NewSPDYExecutor(&restclient.Config{}, http.MethodPost, u)
	} else {
		e, err = remotecommand.NewWebSocketExecutorForProtocols(&restclient.Config{}, http.MethodGet, u.String(), protocol)
	}
	require.NoError(t, err)
	return e
}

func TestExecWithEachProtocol(t *testing.T) {
	n := newNode(t)
	n.onSim()
	for _, protocol := range []string{"SPDY", "v5.channel.k8s.io", "v4.channel.k8s.io"} {
		t.Run(protocol, func(t *testing.T) {
			var out bytes.Buffer
			err := n.older(t, protocol, "/exec/default/web-n/a?command=echo&command=hello&output=1").StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out})
			require.NoError(t, err)
			require.Equal(t, "hello\n", out.String())
		})
	}
}

// Between client and agent there may be somebody who does not let WebSocket through.
func TestTheClientFallsBackToSPDY(t *testing.T) {
	n := newNode(t)
	n.onSim()
	n.wrap = func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Sec-Websocket-Key") != "" {
				http.Error(w, "not here", http.StatusForbidden)
				return
			}
			h.ServeHTTP(w, r)
		})
	}
	n.serve()
	var out bytes.Buffer
	require.NoError(t, n.client.Exec(t.Context(), target, []string{"cat"}, remotecommand.StreamOptions{Stdin: strings.NewReader("typed"), Stdout: &out}))
	require.Equal(t, "typed", out.String())
	n.forwards()
}

func TestAttach(t *testing.T) {
	n := newNode(t)
	sim := n.onSim()
	n.serve()
	seen, ended := make(writes), make(chan error, 1)
	go func() {
		ended <- n.client.Attach(t.Context(), target, remotecommand.StreamOptions{Stdin: strings.NewReader("typed\n"), Stdout: seen})
	}()
	require.Equal(t, "typed\n", <-seen)
	v, _ := n.store.Get("u1")
	require.NoError(t, sim.Kill(v.State.Containers[0].ID, crisimExit))
	require.NoError(t, <-ended)
}

type writes chan string

func (c writes) Write(p []byte) (int, error) {
	if len(p) > 0 {
		c <- string(p)
	}
	return len(p), nil
}

// When the client of a command that waits goes away, nothing of it is left in
// the agent; when the agent ends, the client is told.
func TestAStreamEndsWithEitherSide(t *testing.T) {
	n := newNode(t)
	n.onSim()
	n.serve()
	begin := func(ctx context.Context) <-chan error {
		seen, ended := make(writes, 1), make(chan error, 1)
		in, typing := io.Pipe()
		t.Cleanup(func() { _ = typing.Close() })
		go func() {
			ended <- n.client.Attach(ctx, target, remotecommand.StreamOptions{Stdin: in, Stdout: seen})
		}()
		_, err := typing.Write([]byte("typed\n"))
		require.NoError(t, err)
		require.Equal(t, "typed\n", <-seen)
		return ended
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone, stays := begin(ctx), begin(t.Context())
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	n.stop(errors.New("the agent ends"))
	require.Error(t, <-stays)
	n.ended <- <-n.ended // Serve waits for the streams
}

// Nobody types and nothing is printed any more: only the connection tells that
// the client is gone.
func TestASilentStreamEndsWithItsClient(t *testing.T) {
	n := newNode(t)
	n.onSim()
	n.serve()
	ctx, cancel := context.WithCancel(t.Context())
	seen, ended := make(first, 1), make(chan error, 1)
	go func() { ended <- n.client.Attach(ctx, target, remotecommand.StreamOptions{Stdout: seen}) }()
	in, typing := io.Pipe()
	defer typing.Close()
	typist := make(chan error, 1)
	go func() {
		typist <- n.client.Attach(t.Context(), target, remotecommand.StreamOptions{Stdin: in, Stdout: io.Discard})
	}()
	for attached := false; !attached; {
		_, err := typing.Write([]byte("x\n"))
		require.NoError(t, err)
		select {
		case <-seen:
			attached = true
		case <-time.After(time.Millisecond):
		}
	}
	require.EqualValues(t, 2, n.active.Load())
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	n.idle(1)
	n.stop(errors.New("the test is over"))
	require.Error(t, <-typist)
}

// first tells of the first thing that is written.
type first chan string

func (c first) Write(p []byte) (int, error) {
	select {
	case c <- string(p):
	default:
	}
	return len(p), nil
}

// idle waits until no more than that many requests are being answered.
func (n *node) idle(left int32) {
	n.Helper()
	require.Eventually(n, func() bool { return n.active.Load() <= left }, 10*time.Second, time.Millisecond)
}

func TestPortForward(t *testing.T) {
	n := newNode(t)
	n.onSim()
	n.serve()
	n.forwards()
}

// forwards sends something through forwarded ports.
func (n *node) forwards() {
	t := n.T
	t.Helper()
	out, in := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- n.client.Forward(ctx, remote.Target{Namespace: "default", Pod: "web-n", UID: "u1"}, []string{":80"}, in, io.Discard)
		_ = in.Close()
	}()
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	listens := regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:\d+) -> 80$`).FindStringSubmatch(lines.Text())
	require.NotNil(t, listens, lines.Text())
	go func() {
		for lines.Scan() { //nolint:revive // the rest of the output is of no interest
		}
	}()
	for i := range 3 {
		c, err := net.Dial("tcp", listens[1])
		require.NoError(t, err)
		text := fmt.Sprintf("connection %d", i)
		_, err = c.Write([]byte(text))
		require.NoError(t, err)
		got := make([]byte, len(text))
		_, err = io.ReadFull(c, got)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
		require.NoError(t, c.Close())
	}
	cancel()
	require.NoError(t, <-ended)
	n.idle(0)
}

func TestRun(t *testing.T) {
	n := newNode(t)
	n.onSim()
	code, body := n.ask("POST", "/run/default/web-n/a?cmd=anything+at+all")
	require.Equal(t, 200, code)
	require.Empty(t, body)
	code, body = n.ask("POST", "/run/default/web-n/u1/a?cmd=it+fails")
	require.Equal(t, 500, code)
	require.Equal(t, "command 'it fails' exited with 4: err\n", body)
	code, _ = n.ask("GET", "/run/default/web-n/a?cmd=x")
	require.Equal(t, 405, code)
}

func TestRefusedStreams(t *testing.T) {
	n := newNode(t)
	sim := n.onSim()
	n.serve()
	tests := map[string]struct {
		code int
		want string
	}{
		"POST /exec/default/web-n/a?command=x":               {400, "you must specify at least 1 of stdin, stdout, stderr"},
		"POST /exec/default/web-n/a?command=x&output=0":      {400, "you must specify at least 1 of stdin, stdout, stderr"},
		"POST /attach/default/web-n/a":                       {400, "you must specify at least 1 of stdin, stdout, stderr"},
		"POST /exec/default/web-n/a?command=x&tty=1&error=1": {400, "you must specify at least 1 of stdin, stdout, stderr"},
		"POST /exec/default/nope/a?command=x&output=1":       {404, "pod does not exist"},
		"POST /exec/default/web-n/u2/a?command=x&output=1":   {404, "pod does not exist"},
		"POST /attach/other/web-n/a?output=1":                {404, "pod does not exist"},
		"POST /portForward/default/nope":                     {404, "pod does not exist"},
		"POST /portForward/default/web-n/u2":                 {404, "pod does not exist"},
		"POST /run/default/nope/a?cmd=x":                     {404, "pod does not exist"},
		"POST /exec/default/web-n/b?command=x&output=1":      {500, `container not found ("b")`},
		"POST /attach/default/web-n/nope?output=1":           {500, `container not found ("nope")`},
		"POST /run/default/web-n/b?cmd=x":                    {500, `container not found ("b")`},
		"POST /exec/default/web-n/a?command=x&output=1":      {500, "Upgrade request required"},
		"GET /attach/default/web-n/a?output=1":               {500, "Upgrade request required"},
		"GET /portForward/default/web-n":                     {500, "Upgrade request required"},
		"DELETE /exec/default/web-n/a?command=x&output=1":    {405, ""},
		"PUT /portForward/default/web-n":                     {405, ""},
	}
	for request, tt := range tests {
		t.Run(request, func(t *testing.T) {
			method, path, _ := strings.Cut(request, " ")
			code, body := n.ask(method, path)
			require.Equal(t, tt.code, code, body)
			require.Contains(t, body, tt.want)
		})
	}
	t.Run("what the client is told", func(t *testing.T) {
		nope := target
		nope.Container = "nope"
		err := n.client.Exec(t.Context(), nope, []string{"x"}, remotecommand.StreamOptions{Stdout: io.Discard})
		require.EqualError(t, err, `container not found ("nope")`)
		err = n.client.Forward(t.Context(), remote.Target{Namespace: "default", Pod: "nope"}, []string{":80"}, io.Discard, io.Discard)
		require.EqualError(t, err, "pod does not exist")
		err = n.client.Forward(t.Context(), target, []string{"80:x"}, io.Discard, io.Discard)
		require.ErrorContains(t, err, "error parsing remote port 'x'")
		_, err = n.client.Logs(t.Context(), nope, nil)
		require.EqualError(t, err, `container "nope" not found in pod "web-n"`)
		_, err = n.client.Logs(t.Context(), target, url.Values{"tailLines": {"x"}})
		require.EqualError(t, err, `tailLines: "x" is not a number`)
	})
	t.Run("by the runtime", func(t *testing.T) {
		v, _ := n.store.Get("u1")
		require.NoError(t, sim.Kill(v.State.Containers[0].ID, crisimExit)) // and the agent does not know yet
		code, body := n.ask("POST", "/exec/default/web-n/a?command=x&output=1")
		require.Equal(t, 500, code)
		require.Contains(t, body, "container is in CONTAINER_EXITED state")
		n.started("gone", 0, pod.Running)
		code, body = n.ask("POST", "/exec/default/web-n/a?command=x&output=1")
		require.Equal(t, 404, code)
		require.Contains(t, body, "not found")
		n.started("gone", 0, pod.Exited)
		code, body = n.ask("POST", "/portForward/default/web-n")
		require.Equal(t, 500, code)
		require.Contains(t, body, "failed to find sandboxID for pod default/web-n")
	})
}

// What is typed, printed or run is not told to anybody else.
func TestStreamsAreNotLogged(t *testing.T) {
	n := newNode(t)
	n.onSim()
	n.serve()
	text, restore := captureStderr(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_ = n.client.Exec(ctx, target, []string{"echo", "sekret-4711"}, remotecommand.StreamOptions{Stdout: io.Discard})
	_ = n.client.Exec(ctx, target, []string{"exit", "sekret-4711"}, remotecommand.StreamOptions{Stdin: strings.NewReader("sekret-4711"), Stdout: broken{}, Stderr: io.Discard})
	restore()
	require.NotContains(t, text(), "sekret-4711")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken") }
