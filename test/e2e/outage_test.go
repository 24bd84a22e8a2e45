//go:build e2e

package e2e_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// The agent outlives its runtime: it says what is wrong, pods go on, and what was asked for meanwhile is done afterwards.
func TestRuntimeIsStopped(t *testing.T) {
	testOutage(t, func(t *testing.T) { require.NoError(t, node.StopRuntime(t.Context())) })
}

func TestRuntimeIsKilled(t *testing.T) {
	testOutage(t, func(t *testing.T) { require.NoError(t, unix.Kill(runtimePID(t), unix.SIGKILL)) })
}

func testOutage(t *testing.T, stop func(*testing.T)) {
	sawOn(t, node, "a runtime that is stopped, or killed, and comes back")
	a := newAgent(t, node)
	health := a.serveHealth()
	a.write("before.yaml", sleeper("before"))
	a.start()
	p := a.untilPod("before", "is ready", isReady)
	a.until("all is well", func() error { return health(http.StatusOK, "[+]runtime-list ok") })
	before := a.containers()

	restored := false
	t.Cleanup(func() {
		if !restored { // for the tests to come
			_ = node.RestartRuntime(t.Context())
		}
	})
	stop(t)
	begin := time.Now()
	a.write("during.yaml", sleeper("during"))
	a.until("healthz names the runtime", func() error { return health(http.StatusInternalServerError, "[-]runtime-list failed: ") })
	a.until("get node names the runtime", func() error {
		out, _ := a.run("get", "node")
		return missing(out, "FAILED  runtime-list")
	})
	a.untilPod("during", "is there and not ready", func(p *v1.Pod) bool { return !isReady(p) })
	out, code := a.run("why", "during")
	require.Equal(t, 3, code, out)
	<-time.After(5*time.Second - time.Since(begin))
	require.NoError(t, node.RestartRuntime(t.Context()))
	restored = true

	a.untilPod("during", "is ready", isReady)
	a.until("all is well", func() error { return health(http.StatusOK, "[+]runtime-list ok") })
	after := a.untilPod("before", "is ready", isReady)
	require.Equal(t, p.Status.ContainerStatuses, after.Status.ContainerStatuses)
	require.Equal(t, before, containersOf(a.containers(), string(p.UID), "main"))
	a.agree()
}

// An agent that is started before its runtime waits for it.
func TestAgentBeforeTheRuntime(t *testing.T) {
	sawOn(t, node, "an agent that is started before its runtime")
	require.NoError(t, node.StopRuntime(t.Context()))
	started := false
	start := func() {
		if !started {
			started = true
			require.NoError(t, node.RestartRuntime(t.Context()))
		}
	}
	t.Cleanup(start)
	a := newAgent(t, node)
	health := a.serveHealth()
	a.write("early.yaml", sleeper("early"))
	a.start()
	a.until("healthz names the runtime", func() error { return health(http.StatusInternalServerError, "[-]runtime-") })
	a.until("the pod is shown", func() error {
		out, _ := a.run("get", "pods")
		return missing(out, "early-e2e")
	})
	start()
	a.untilPod("early", "is ready", isReady)
	a.until("all is well", func() error { return health(http.StatusOK, "") })
}

// serveHealth gives the agent a healthz port, and returns a check of what is answered there.
func (a *agent) serveHealth() func(code int, line string) error {
	a.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(a.t, err)
	addr := l.Addr().(*net.TCPAddr)
	require.NoError(a.t, l.Close())
	a.config["healthzPort"] = addr.Port
	return func(code int, line string) error {
		resp, err := (&http.Client{Timeout: 10 * time.Second}).Get("http://" + addr.String() + "/healthz?verbose")
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		if resp.StatusCode != code {
			return fmt.Errorf("%s: %s", resp.Status, body)
		}
		return missing(string(body), line)
	}
}

// runtimePID is the process that listens on the node's CRI socket.
func runtimePID(t *testing.T) int {
	t.Helper()
	conn, err := net.Dial("unix", strings.TrimPrefix(node.Endpoint, "unix://"))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	require.NoError(t, err)
	var cred *unix.Ucred
	var cerr error
	require.NoError(t, raw.Control(func(fd uintptr) {
		cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}))
	require.NoError(t, cerr)
	return int(cred.Pid)
}
