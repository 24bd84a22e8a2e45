package crisim_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/flowlet/flowlet/cri"
	"github.com/flowlet/flowlet/cri/crisim"
)

// streaming is a simulated runtime that serves streams, in real time.
func streaming(t *testing.T) node {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	sim := crisim.New(crisim.Config{Logs: crisim.Files{}})
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 2)
	go func() { ended <- sim.Run(ctx) }()
	go func() { ended <- sim.ServeStreams(ctx, lis) }()
	conn := sim.Conn()
	n := node{T: t, ctx: ctx, sim: sim, client: cri.New(conn)}
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
	})
	require.Eventually(t, func() bool { // until ServeStreams has begun
		_, err := n.client.Exec(ctx, &runtimeapi.ExecRequest{ContainerId: "none"})
		return cri.IsNotFound(err)
	}, 10*time.Second, time.Millisecond)
	return n
}

func (n node) exec(container string, tty bool, cmd ...string) remotecommand.Executor {
	n.Helper()
	at, err := n.client.Exec(n.ctx, &runtimeapi.ExecRequest{ContainerId: container, Cmd: cmd, Stdin: true, Stdout: true, Stderr: !tty, Tty: tty})
	require.NoError(n, err)
	return n.executor(at)
}

func (n node) executor(at string) remotecommand.Executor {
	n.Helper()
	u, err := url.Parse(at)
	require.NoError(n, err)
	e, err := remotecommand.NewSPDYExecutor(&restclient.Config{}, "POST", u)
	require.NoError(n, err)
	return e
}

func TestExecPrograms(t *testing.T) {
	n := streaming(t)
	_, id := n.start(inTemp(t, pod("a", `{"web":{"exec":[{"command":"scripted","code":4,"stdout":"out","stderr":"err"}]}}`)))
	tests := map[string]struct {
		command, in string
		out, err    string
		code        int
	}{
		"echo":                {command: "echo a b", out: "a b\n"},
		"cat":                 {command: "cat", in: "typed\n", out: "typed\n"},
		"exit":                {command: "exit 3", code: 3},
		"exit what":           {command: "exit what", code: 1, err: "strconv.ParseInt: parsing \"what\": invalid syntax\n"},
		"sleep":               {command: "sleep 1ms"},
		"sleep for how long?": {command: "sleep x", code: 1, err: "time: invalid duration \"x\"\n"},
		"size of nothing":     {command: "size", code: 1, err: "there is no terminal\n"},
		"something else":      {command: "/bin/true x"},
		"as the script is":    {command: "scripted", out: "out", err: "err", code: 4},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			err := n.exec(id, false, strings.Fields(tt.command)...).StreamWithContext(t.Context(),
				remotecommand.StreamOptions{Stdin: strings.NewReader(tt.in), Stdout: &out, Stderr: &errOut})
			if tt.code != 0 {
				var code exec.CodeExitError
				require.ErrorAs(t, err, &code)
				require.Equal(t, tt.code, code.ExitStatus())
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, tt.out, out.String())
			require.Equal(t, tt.err, errOut.String())
		})
	}
}

type oneSize struct {
	sizes chan remotecommand.TerminalSize
}

func (s oneSize) Next() *remotecommand.TerminalSize {
	size, ok := <-s.sizes
	if !ok {
		return nil
	}
	return &size
}

func TestExecSize(t *testing.T) {
	n := streaming(t)
	_, id := n.start(inTemp(t, pod("a", "")))
	var out bytes.Buffer
	q := oneSize{make(chan remotecommand.TerminalSize, 1)}
	q.sizes <- remotecommand.TerminalSize{Width: 120, Height: 40}
	close(q.sizes)
	require.NoError(t, n.exec(id, true, "size").StreamWithContext(t.Context(),
		remotecommand.StreamOptions{Stdin: strings.NewReader(""), Stdout: &out, Tty: true, TerminalSizeQueue: q}))
	require.Equal(t, "40 120\n", out.String())
}

func TestAttachSeesWhatIsLoggedUntilTheEnd(t *testing.T) {
	n := streaming(t)
	_, id := n.start(inTemp(t, pod("a", "")))
	at, err := n.client.Attach(n.ctx, &runtimeapi.AttachRequest{ContainerId: id, Stdin: true, Stdout: true})
	require.NoError(t, err)
	seen := make(chan string)
	ended := make(chan error, 1)
	go func() {
		ended <- n.executor(at).StreamWithContext(n.ctx, remotecommand.StreamOptions{Stdin: strings.NewReader("one\ntwo\n"), Stdout: toChannel(seen)})
	}()
	text := ""
	for !strings.HasSuffix(text, "two\n") {
		text += <-seen
	}
	require.Equal(t, "one\ntwo\n", text)
	require.NoError(t, n.client.StopContainer(n.ctx, id, 0))
	require.NoError(t, <-ended)
}

type toChannel chan string

func (c toChannel) Write(p []byte) (int, error) {
	c <- string(p)
	return len(p), nil
}

func TestPortForwardEchoes(t *testing.T) {
	n := streaming(t)
	sandbox, _ := n.start(inTemp(t, pod("a", "")))
	at, err := n.client.PortForward(n.ctx, &runtimeapi.PortForwardRequest{PodSandboxId: sandbox})
	require.NoError(t, err)
	u, err := url.Parse(at)
	require.NoError(t, err)
	rt, upgrader, err := spdy.RoundTripperFor(&restclient.Config{})
	require.NoError(t, err)
	stop, ready := make(chan struct{}), make(chan struct{})
	f, err := portforward.NewOnAddresses(spdy.NewDialer(upgrader, &http.Client{Transport: rt}, "POST", u), []string{"127.0.0.1"}, []string{"0:80"}, stop, ready, nil, nil)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- f.ForwardPorts() }()
	<-ready
	ports, err := f.GetPorts()
	require.NoError(t, err)
	c, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(ports[0].Local)})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write([]byte("hello"))
	require.NoError(t, err)
	got := make([]byte, 5)
	_, err = c.Read(got)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
	close(stop)
	require.NoError(t, <-ended)
}

func TestARestartCutsStreams(t *testing.T) {
	n := streaming(t)
	_, id := n.start(inTemp(t, pod("a", "")))
	at, err := n.client.Attach(n.ctx, &runtimeapi.AttachRequest{ContainerId: id, Stdin: true, Stdout: true})
	require.NoError(t, err)
	seen, ended := make(chan string, 1), make(chan error, 1)
	in, typing := net.Pipe()
	defer typing.Close()
	go func() {
		ended <- n.executor(at).StreamWithContext(n.ctx, remotecommand.StreamOptions{Stdin: in, Stdout: toChannel(seen)})
	}()
	_, err = typing.Write([]byte("one\n"))
	require.NoError(t, err)
	require.Equal(t, "one\n", <-seen)
	n.sim.Restart()
	<-ended
}

// inTemp lets the pod's logs be below a directory of the test.
func inTemp(t *testing.T, c *runtimeapi.PodSandboxConfig) *runtimeapi.PodSandboxConfig {
	t.Helper()
	c.LogDirectory = t.TempDir()
	return c
}
