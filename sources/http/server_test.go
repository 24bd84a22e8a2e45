package http_test

import (
	"context"
	"errors"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/manifest"
	"github.com/flowlet/flowlet/sources/http"
)

// TestRealServer asks servers on loopback: the first redirects to the second,
// which must not see the headers for the first.
func TestRealServer(t *testing.T) {
	const token = "X-Token"
	conditional := make(chan string, 100)
	second := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		conditional <- r.Header.Get(token) + r.Header.Get("If-Modified-Since")
		nethttp.ServeContent(w, r, "", time.Unix(1e9, 0), strings.NewReader(pod("a", "a:1")))
	}))
	defer second.Close()
	first := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		if r.Header.Get(token) != secret {
			w.WriteHeader(nethttp.StatusForbidden)
			return
		}
		nethttp.Redirect(w, r, second.URL, nethttp.StatusFound)
	}))
	defer first.Close()

	ctx, stop := context.WithCancelCause(t.Context())
	updates, done := make(chan manifest.Update, 100), make(chan error, 1)
	source := http.New(http.Config{
		URL: first.URL + "/pods?x=1", NodeName: "n1", Period: 10 * time.Millisecond, Header: map[string][]string{"x-token": {secret}},
	})
	go func() { done <- source.Run(ctx, func(u manifest.Update) { updates <- u }) }()
	require.Equal(t, manifest.Set, (<-updates).Kind)
	require.Equal(t, manifest.Synced, (<-updates).Kind)
	require.Empty(t, <-conditional, "no token for another server")
	require.Equal(t, "Sun, 09 Sep 2001 01:46:40 GMT", <-conditional)
	<-conditional // its answer, not modified, was read
	require.NoError(t, source.State().Err)
	require.Equal(t, first.URL+"/pods", source.State().URL)

	first.CloseClientConnections()
	stop(errors.New("test is over"))
	require.EqualError(t, <-done, "test is over")
	require.Empty(t, updates)
}

func TestURLThatCannotBeAsked(t *testing.T) {
	for _, u := range []string{"gopher://x/", "://", "http://127.0.0.1:1/?" + secret} {
		ctx, stop := context.WithCancelCause(t.Context())
		source := http.New(http.Config{URL: u, NodeName: "n1", Period: time.Millisecond})
		done := make(chan error, 1)
		go func() { done <- source.Run(ctx, func(manifest.Update) { t.Error("told something") }) }()
		require.Eventually(t, func() bool { return source.State().Err != nil }, 10*time.Second, time.Millisecond)
		require.NotContains(t, source.State().Err.Error(), secret)
		stop(errors.New("test is over"))
		<-done
	}
}
