package app_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/cri/crisim"
)

// runtimeOn serves a simulated runtime on a socket until stop is called.
func runtimeOn(t *testing.T, path string) (stop func()) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- crisim.New(crisim.Config{}).Serve(ctx, l) }()
	return func() {
		cancel(errors.New("the runtime dies"))
		require.NoError(t, <-ended)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return port
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(data)
}

func TestRuntimeThatIsAwayComesDiesAndComesAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for real back-offs")
	}
	dir := t.TempDir()
	socket, port := filepath.Join(dir, "cri.sock"), freePort(t)
	d := start(t, filepath.Join(dir, "root"), "--container-runtime-endpoint=unix://"+socket, "--healthz-port="+port,
		"--oom-score-adj=0", "--fail-swap-on=false", "--fail-cgroupv1=false")
	url := "http://127.0.0.1:" + port + "/healthz?verbose"
	away := func(when string) {
		t.Helper()
		d.eventually(when, func() bool {
			status, body := get(t, url)
			return status == http.StatusInternalServerError && strings.Contains(body, "[-]runtime-list failed: ") &&
				strings.Contains(body, "[-]runtime-ready failed: ") && strings.Contains(body, socket)
		})
		d.eventually(when+": there are no events", func() bool { // told by another call than the one of the health check
			n, err := d.client.Node(t.Context())
			return err == nil && !n.Runtime.Ready && !n.Runtime.Events && n.Runtime.EventsOff != ""
		})
		why, err := d.client.WhyNode(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, why.Blocking)
	}
	back := func(when string) {
		t.Helper()
		d.eventually(when, func() bool {
			status, _ := get(t, url)
			n, err := d.client.Node(t.Context())
			return status == http.StatusOK && err == nil && n.Runtime.Ready && n.Runtime.Version != ""
		})
	}
	away("nobody is there at the start")
	stop := runtimeOn(t, socket)
	back("it is there")
	stop()
	away("it died")
	require.Contains(t, d.log.String(), "the container runtime is not ready; it is tried again, and running containers go on")
	stop = runtimeOn(t, socket)
	defer stop()
	back("it is there again")
	require.Equal(t, 2, strings.Count(d.log.String(), `msg="the container runtime is ready"`))
}
