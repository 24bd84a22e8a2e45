package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/server"
)

// serve answers on the local socket of a root directory until the test ends.
func serve(t *testing.T, root string, h http.Handler) {
	t.Helper()
	l, err := server.ListenLocal(root)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, l, h) }()
	t.Cleanup(func() {
		cancel(errors.New("the test is over"))
		require.NoError(t, <-done)
	})
}

func TestClientAndServer(t *testing.T) {
	root := t.TempDir()
	serve(t, root, agent().Handler())
	c, ctx := server.NewClient(root), t.Context()

	pods, err := c.Pods(ctx)
	require.NoError(t, err)
	require.Len(t, pods.Items, 2)
	files, err := c.Files(ctx)
	require.NoError(t, err)
	require.Len(t, files, 1)
	n, err := c.Node(ctx)
	require.NoError(t, err)
	require.Equal(t, 2, n.Pods)
	p, err := c.Policy(ctx)
	require.NoError(t, err)
	require.Len(t, p.Classes, 2)
	d, err := c.Pod(ctx, "default/web")
	require.NoError(t, err)
	require.Equal(t, "web-n", d.Pod.Name)
	w, err := c.Why(ctx, "u1")
	require.NoError(t, err)
	require.Len(t, w.Blocking, 1)
	wn, err := c.WhyNode(ctx)
	require.NoError(t, err)
	require.Empty(t, wn.Blocking)
	text, err := c.Dag(ctx, "web", explain.Format("dot"))
	require.NoError(t, err)
	require.Contains(t, text, "digraph")
	tr, err := c.Trace(ctx, "web", "pod.start")
	require.NoError(t, err)
	require.Equal(t, "default/web-n", tr.Pod)
	j, err := c.Journal(ctx, "web")
	require.NoError(t, err)
	require.Len(t, j.Lines, 1)
	plan, err := c.Plan(ctx, "/m/a b.yaml", []byte("x"))
	require.NoError(t, err)
	require.Equal(t, []string{"/m/a b.yaml x"}, plan.Notes)
	plan, err = c.PlanRemoval(ctx, "/m/a.yaml")
	require.NoError(t, err)
	require.Equal(t, []string{"removed /m/a.yaml"}, plan.Notes)
	_, err = c.Pod(ctx, "nope")
	require.EqualError(t, err, `pod "nope" is not known here: use NAMESPACE/NAME, NAME (namespace default) or a UID; `+"`flowlet get pods` lists them")
}

func TestClientErrors(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, server.SocketName)
	missing := func(err error) {
		t.Helper()
		require.EqualError(t, err, "no agent answers on "+path+": is `flowlet run` running, with the same --root-dir?")
	}
	_, err := server.NewClient(root).Pods(t.Context())
	missing(err)

	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	_, err = server.NewClient(root).Pods(t.Context())
	missing(err) // a socket that a dead agent left

	serve(t, root, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/v1/pods"):
			w.WriteHeader(http.StatusTeapot)
		case strings.HasPrefix(r.URL.Path, "/v1/node"):
			_, _ = w.Write([]byte("{half"))
		default:
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(server.Problem{Error: "no such thing"})
		}
	}))
	_, err = server.NewClient(root).Pods(t.Context())
	require.EqualError(t, err, "the agent answered 418 I'm a teapot")
	_, err = server.NewClient(root).Node(t.Context())
	require.ErrorContains(t, err, "reading the agent's answer: ")
	_, err = server.NewClient(root).Policy(t.Context())
	require.EqualError(t, err, "no such thing")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err = server.NewClient(root).Policy(ctx)
	require.ErrorContains(t, err, "asking the agent on "+path)
}

func TestSocketIsTheOwnersOnly(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, server.SocketName)
	require.NoError(t, os.WriteFile(path, []byte("left over"), 0o600))
	l, err := server.ListenLocal(root)
	require.NoError(t, err, "what is in the way is replaced")
	defer l.Close()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NotZero(t, info.Mode()&os.ModeSocket)

	_, err = server.ListenLocal(filepath.Join(root, "nope"))
	require.ErrorContains(t, err, "opening the local socket: ")
}

func TestServeTellsWhenTheListenerFails(t *testing.T) {
	l, err := server.ListenLocal(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorContains(t, server.Serve(t.Context(), l, http.NotFoundHandler()), "serving on ")
}
