package app_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/pod"
)

func TestTwoSourcesThatWantOneName(t *testing.T) {
	var body atomic.Value
	body.Store("apiVersion: v1\nkind: PodList\nitems: []\n")
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(body.Load().(string)))
	}))
	defer web.Close()
	d := start(t, t.TempDir(), "--manifest-url="+web.URL, "--http-check-frequency=50ms")
	d.write("web.yaml", manifest)
	d.running("web")
	first, err := d.client.Pod(t.Context(), "web")
	require.NoError(t, err)

	body.Store(manifest)
	var second v1.Pod
	d.eventually("the other is there too", func() bool {
		pods, err := d.client.Pods(t.Context())
		require.NoError(t, err)
		for _, p := range pods.Items {
			if p.UID != first.Pod.UID {
				second = p
			}
		}
		return second.UID != ""
	})
	d.eventually("it says why it waits", func() bool {
		p, err := d.client.Pod(t.Context(), string(second.UID))
		require.NoError(t, err)
		return slices.ContainsFunc(p.Events, func(e pod.Event) bool {
			return e.Reason == "NameConflict" && e.Count == 1 &&
				e.Message == "another pod of this name is here, UID "+string(first.Pod.UID)+": this one waits until that is gone"
		})
	})
	_, err = d.client.Pod(t.Context(), "web")
	require.ErrorContains(t, err, "is ambiguous, name one by its UID")
	d.running(string(first.Pod.UID))

	why, err := d.client.Why(t.Context(), string(second.UID))
	require.NoError(t, err)
	require.Contains(t, why.Text(), "name lock")
}
