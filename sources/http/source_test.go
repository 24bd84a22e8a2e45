package http_test

import (
	"errors"
	nethttp "net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flowlet/flowlet/internal/manifest"
	"github.com/flowlet/flowlet/sources/http"
)

func TestTellsAllThenSyncedThenChanges(t *testing.T) {
	in(t, list(pod("b", "b:1"), pod("a", "a:1")), func(t *testing.T, w *world) {
		u := w.updates[0]
		require.Equal(t, manifest.SourceHTTP, u.Pod.Annotations[manifest.AnnotationSource])
		require.Empty(t, u.Pod.Spec.Tolerations, "other than a file's pod it minds taints")
		require.Equal(t, []string{"set default/b-n1 b:1", "set default/a-n1 a:1", "synced"}, w.told())
		w.pass(10 * http.DefaultPeriod)
		require.Empty(t, w.told())
		require.Len(t, w.asked, 11, "once at the start and once in a period")
		w.put(list(pod("a", "a:1"), pod("c", "c:1")))
		require.Equal(t, []string{"gone default/b-n1 b:1", "set default/c-n1 c:1"}, w.told())
		w.put(pod("a", "a:1"))
		require.Equal(t, []string{"gone default/c-n1 c:1"}, w.told(), "a single pod, the same as in the list")
	})
}

func TestEditIsGoneThenSetUnlessItHasItsUID(t *testing.T) {
	in(t, list(pod("a", "a:1"), pod("b", "b:1", uid("u"))), func(t *testing.T, w *world) {
		seen := w.updates[1].Pod.Annotations[manifest.AnnotationSeen]
		w.told()
		w.put(list(pod("a", "a:2"), pod("b", "b:2", uid("u"))))
		require.Equal(t, seen, w.updates[2].Pod.Annotations[manifest.AnnotationSeen], "first seen stays")
		require.Equal(t, []string{"gone default/a-n1 a:1", "set default/a-n1 a:2", "set default/b-n1 b:2"}, w.told())
		w.put(list(pod("a", "a:2"), pod("x", "b:2", uid("u"))))
		require.Equal(t, []string{"gone default/b-n1 b:2", "set default/x-n1 b:2"}, w.told(), "another name is another pod")
	})
}

// What is not understood as a whole changes nothing, before and after the
// first good answer.
func TestBadAnswersChangeNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		serve func(w *world)
		err   string
	}{
		"not found":      {func(w *world) { w.status = nethttp.StatusNotFound }, shown + ": the server answered 404 Not Found"},
		"no content":     {func(w *world) { w.status = nethttp.StatusNoContent }, "204 No Content"},
		"304 unasked":    {func(w *world) { w.status = nethttp.StatusNotModified }, "304 Not Modified"},
		"empty":          {func(w *world) { w.body = "" }, "the answer is empty; serve [] to remove all pods"},
		"white space":    {func(w *world) { w.body = " \n" }, "the answer is empty"},
		"no items":       {func(w *world) { w.body = `{"kind":"PodList","apiVersion":"v1"}` }, "a list without items; serve items: []"},
		"no pod":         {func(w *world) { w.body = "<html>login</html>" }, "holds no object"},
		"half":           {func(w *world) { w.body = w.body[:len(w.body)-3] }, "not valid YAML or JSON"},
		"one bad pod":    {func(w *world) { w.body = list(pod("a", "a:2"), pod("B", "b:1")) }, "items[1]"},
		"one of a list":  {func(w *world) { w.body = list(pod("", "a:2")) }, "metadata.name"},
		"API objects":    {func(w *world) { w.body = strings.Replace(w.body, `"spec":{`, `"spec":{"serviceAccountName":"x",`, 1) }, "serviceaccounts"},
		"too large":      {func(w *world) { w.body += strings.Repeat(" ", manifest.MaxBytes) }, "larger than 10 MiB"},
		"no connection":  {func(w *world) { w.err = &url.Error{Op: "Get", URL: where, Err: errors.New("connection refused")} }, shown + ": connection refused"},
		"hangs for ever": {func(w *world) { w.hang = true }, shown + ": no answer within 10s"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, list(pod("a", "a:1")), func(t *testing.T, w *world) {
				w.told()
				good := w.source.State()
				w.serve(tc.serve)
				w.pass(5 * http.DefaultPeriod)
				require.Empty(t, w.told())
				st := w.source.State()
				require.ErrorContains(t, st.Err, tc.err)
				require.Equal(t, good.Pods, st.Pods, "the last good ones")
				require.Equal(t, good.Good, st.Good)
				require.Equal(t, 1, w.logged("not used"))

				w.serve(func(w *world) { w.status, w.body, w.err, w.hang = 200, list(pod("a", "a:2")), nil, false })
				w.pass(http.DefaultPeriod)
				require.Equal(t, []string{"gone default/a-n1 a:1", "set default/a-n1 a:2"}, w.told())
				require.NoError(t, w.source.State().Err)
				require.Equal(t, 1, w.logged("used again"))
			})
		})
	}
}

func TestNothingIsSyncedBeforeTheFirstGoodAnswer(t *testing.T) {
	in(t, "", func(t *testing.T, w *world) {
		w.pass(10 * http.DefaultPeriod)
		require.Empty(t, w.told())
		require.Equal(t, 1, w.logged("the answer is empty"))
		require.Zero(t, w.source.State().Good)
		w.put("[]")
		require.Equal(t, []string{"synced"}, w.told())
	})
}

func TestEmptyListsOnPurposeRemoveAll(t *testing.T) {
	for _, body := range []string{"[]", " [ ]\n", list(), `{"kind":"PodList","apiVersion":"v1","items":null}`, "apiVersion: v1\nkind: List\nitems: []\n"} {
		in(t, pod("a", "a:1"), func(t *testing.T, w *world) {
			w.told()
			w.put(body)
			require.Equal(t, []string{"gone default/a-n1 a:1"}, w.told(), body)
			require.Empty(t, w.source.State().Pods)
		})
	}
}

func TestVersionsAreNotReadAgain(t *testing.T) {
	in(t, pod("a", "a:1"), func(t *testing.T, w *world) {
		w.told()
		w.serve(func(w *world) { w.etag = `"1"` })
		w.pass(http.DefaultPeriod)
		require.Empty(t, w.told())
		require.Equal(t, `"1"`, w.asked[2].Header.Get("If-None-Match"))
		require.NoError(t, w.source.State().Err)
		require.Equal(t, time.Now(), w.source.State().Good, "unchanged is good")

		w.serve(func(w *world) { w.etag, w.body = `"2"`, "broken" })
		w.pass(http.DefaultPeriod)
		require.ErrorContains(t, w.source.State().Err, "holds no object", "unchanged is still bad")
		w.serve(func(w *world) { w.etag, w.body = `"3"`, pod("a", "a:2") })
		require.Equal(t, []string{"gone default/a-n1 a:1", "set default/a-n1 a:2"}, w.told())
	})
}

func TestRequest(t *testing.T) {
	in(t, pod("a", "a:1"), func(t *testing.T, w *world) {
		r := w.asked[0]
		require.Equal(t, where, r.URL.String())
		require.Equal(t, []string{secret, "second"}, r.Header.Values("X-Token"))
		require.Equal(t, "other.example", r.Host)
		require.Empty(t, r.Header.Get("If-None-Match"))
	})
}

func TestSameNameTwice(t *testing.T) {
	in(t, list(pod("p", "1"), pod("p", "2")), func(t *testing.T, w *world) {
		require.Equal(t, []string{"set default/p-n1 1", "synced"}, w.told(), "the first of the list")
		require.Equal(t, "pod default/p-n1 is in the list more than once", w.source.State().Pods[1].Conflict)
		w.put(list(pod("p", "2"), pod("p", "1")))
		w.pass(5 * http.DefaultPeriod)
		require.Empty(t, w.told(), "the one that is set keeps it")
		require.Equal(t, 1, w.logged("more than once"))
		w.put(pod("p", "2"))
		require.Equal(t, []string{"gone default/p-n1 1", "set default/p-n1 2"}, w.told(), "then the other takes over")
	})
}

func TestAfterARestartTheRunningOneWins(t *testing.T) {
	in(t, list(pod("p", "1"), pod("p", "2", uid("running")), pod("q", "3", uid("running"))), func(t *testing.T, w *world) {
		require.Equal(t, []string{"set default/p-n1 2", "synced"}, w.told())
		require.Equal(t, "UID running is already used by pod default/p-n1", w.source.State().Pods[2].Conflict)
	}, func(c *http.Config) { c.Runs = func(u types.UID) bool { return u == "running" } })
}

func TestRunAgainTellsAllAgain(t *testing.T) {
	in(t, list(pod("a", "a:1"), pod("b", "b:1")), func(t *testing.T, w *world) {
		w.told()
		w.end()
		w.body = list(pod("a", "a:1"), pod("c", "c:1"))
		w.run()
		require.Equal(t, []string{"gone default/b-n1 b:1", "set default/a-n1 a:1", "set default/c-n1 c:1", "synced"}, w.told())
	})
}

func TestWarningsAreLoggedOncePerVersion(t *testing.T) {
	in(t, pod("a", "a:1", `,"colour":"red"`), func(t *testing.T, w *world) {
		w.pass(5 * http.DefaultPeriod)
		require.Equal(t, 1, w.logged(`unknown field "metadata.colour"`))
		require.Len(t, w.source.State().Pods[0].Warnings, 1)
		w.put(pod("a", "a:2", `,"colour":"red"`))
		require.Equal(t, 2, w.logged(`unknown field "metadata.colour"`))
	})
}

func TestErrorsThatAlwaysDifferAreLoggedThreeTimes(t *testing.T) {
	in(t, pod("a", "a:1"), func(t *testing.T, w *world) {
		for i := range 10 {
			w.serve(func(w *world) { w.err = errors.New(strings.Repeat("x", i+1)) })
		}
		require.Equal(t, 3, w.logged("not used"))
	})
}
