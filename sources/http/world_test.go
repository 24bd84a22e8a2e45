package http_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	nethttp "net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowlet/flowlet/internal/manifest"
	"github.com/flowlet/flowlet/sources/http"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secret = "hunter2"
	where  = "https://user:" + secret + "@manifests.example/pods?token=" + secret
	shown  = "https://manifests.example/pods"
)

// world is a scripted server, and the source that asks it in virtual time.
type world struct {
	t *testing.T

	mu      sync.Mutex
	status  int
	body    string
	etag    string
	err     error // instead of an answer
	hang    bool  // until the request ends
	asked   []*nethttp.Request
	updates []manifest.Update
	logs    []string

	source *http.Source
	stop   context.CancelCauseFunc
	done   chan error
}

// in runs a script in virtual time against a source that serves body at first.
func in(t *testing.T, body string, script func(t *testing.T, w *world), change ...func(*http.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, status: nethttp.StatusOK, body: body}
		cfg := http.Config{
			URL: where, NodeName: "n1", Client: w, Log: slog.New(w),
			Header: map[string][]string{"x-token": {secret, "second"}, "host": {"other.example"}},
		}
		for _, c := range change {
			c(&cfg)
		}
		w.source = http.New(cfg)
		w.run()
		defer w.end()
		script(t, w)
		for _, l := range w.logs {
			require.NotContains(t, l, secret, "a secret is logged")
		}
		if err := w.source.State().Err; err != nil {
			require.NotContains(t, err.Error(), secret)
		}
	})
}

func (w *world) run() {
	ctx, stop := context.WithCancelCause(context.Background())
	w.stop, w.done = stop, make(chan error, 1)
	go func() {
		w.done <- w.source.Run(ctx, func(u manifest.Update) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.updates = append(w.updates, u)
		})
	}()
	synctest.Wait()
}

func (w *world) end() {
	w.stop(errors.New("test is over"))
	require.EqualError(w.t, <-w.done, "test is over")
}

// serve changes what the server does, and waits for the next look.
func (w *world) serve(change func(w *world)) {
	w.mu.Lock()
	change(w)
	w.mu.Unlock()
	w.pass(http.DefaultPeriod)
}

// put serves another body.
func (w *world) put(body string) { w.serve(func(w *world) { w.body = body }) }

func (w *world) pass(d time.Duration) {
	time.Sleep(d) // virtual
	synctest.Wait()
}

// told returns what was emitted since the last call, one short line each.
func (w *world) told() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := []string{}
	for _, u := range w.updates {
		line := u.Kind.String()
		if u.Kind != manifest.Synced {
			require.Equal(w.t, shown, u.Path)
			line += " " + u.FullName + " " + u.Pod.Spec.Containers[0].Image
		}
		out = append(out, line)
	}
	w.updates = nil
	return out
}

func (w *world) logged(part string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, l := range w.logs {
		n += strings.Count(l, part)
	}
	return n
}

// The world is the server …

func (w *world) Do(r *nethttp.Request) (*nethttp.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, r)
	if w.hang {
		w.mu.Unlock()
		<-r.Context().Done()
		w.mu.Lock()
		return nil, r.Context().Err()
	}
	if w.err != nil {
		return nil, w.err
	}
	resp := &nethttp.Response{StatusCode: w.status, Header: nethttp.Header{}, Body: io.NopCloser(strings.NewReader(w.body))}
	if w.etag != "" {
		resp.Header.Set("ETag", w.etag)
		if r.Header.Get("If-None-Match") == w.etag {
			resp.StatusCode, resp.Body = nethttp.StatusNotModified, nethttp.NoBody
		}
	}
	return resp, nil
}

// … and the log.

func (w *world) Enabled(context.Context, slog.Level) bool { return true }
func (w *world) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *world) WithGroup(string) slog.Handler            { return w }
func (w *world) Handle(_ context.Context, r slog.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	w.logs = append(w.logs, line)
	return nil
}

// pod is one pod in JSON; more are members of its metadata.
func pod(name, image string, more ...string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q%s},"spec":{"containers":[{"name":"c","image":%q}]}}`,
		name, strings.Join(more, ""), image)
}

func uid(u string) string { return fmt.Sprintf(`,"uid":%q`, u) }

func list(pods ...string) string {
	return `{"apiVersion":"v1","kind":"PodList","items":[` + strings.Join(pods, ",") + `]}`
}
