package streaming_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/flowlet/flowlet/cri/streaming"
)

func TestStreamingURLsThatMakeNoSense(t *testing.T) {
	for _, bad := range []string{"", "/exec/token", "http://%zz"} {
		_, err := streaming.Command(bad, remotecommand.Options{})
		require.ErrorContains(t, err, "makes no sense", bad)
		_, err = streaming.Ports(bad)
		require.ErrorContains(t, err, "makes no sense", bad)
	}
}

func TestARuntimeThatIsAway(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	command, err := streaming.Command(gone.URL+"/exec/token", remotecommand.Options{Stdout: true})
	require.NoError(t, err)
	ports, err := streaming.Ports(gone.URL + "/portforward/token")
	require.NoError(t, err)
	for _, h := range []http.Handler{command, ports} {
		r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "SPDY/3.1")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusInternalServerError, w.Code)
		require.Contains(t, w.Body.String(), "error dialing backend")
	}
}

// What the runtime refuses is told as it says it.
func TestARefusalOfTheRuntime(t *testing.T) {
	refusing := httptest.NewServer(http.NotFoundHandler())
	defer refusing.Close()
	h, err := streaming.Command(refusing.URL+"/exec/used", remotecommand.Options{Stdout: true})
	require.NoError(t, err)
	front := httptest.NewServer(h)
	defer front.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL, http.NoBody)
	require.NoError(t, err)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "SPDY/3.1")
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
}
