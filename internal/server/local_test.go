package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
	"github.com/flowlet/flowlet/internal/server"
)

func ask(a *server.Agent, method, target, body string) (int, string) {
	w := httptest.NewRecorder()
	a.Handler().ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

func TestLocalAPI(t *testing.T) {
	tests := map[string]struct {
		status int
		want   []string
	}{
		"GET /v1/pods":                                 {200, []string{`"kind":"PodList"`, `"name":"web-n"`, `"flowlet.dev/left-alone":"source api is not configured here"`}},
		"GET /v1/files":                                {200, []string{`"error":"/m/a.yaml:3: bad"`}},
		"GET /v1/node":                                 {200, []string{`"pods":2`, `"leftAlone":["kube-system/other"]`, `"schema":"flowlet.dev/node/v1"`}},
		"GET /v1/policy":                               {200, []string{`"name":"image"`, `"deadline":"1h0m0s"`, `"running":1`, `"pod":"default/web-n"`, `"order":"priority"`}},
		"GET /v1/pod?pod=web":                          {200, []string{`"Reason":"Pulling"`, `"stage":"image[x]"`, `"flowlet.dev/manifest":"/m/web.yaml"`, `"flowlet.dev/unsupported":"spec.hostUsers"`}},
		"GET /v1/pod?pod=nope":                         {400, []string{`pod \"nope\" is not known here`}},
		"GET /v1/pod":                                  {400, []string{"is not known here"}},
		"GET /v1/why?pod=u1":                           {200, []string{`"state":"running"`, `"schema":"flowlet.dev/why/v1"`}},
		"GET /v1/why-node":                             {200, []string{`"blocking":[]`, `"schema":"flowlet.dev/why-node/v1"`}},
		"GET /v1/dag?pod=web":                          {200, []string{"image[x]"}},
		"GET /v1/dag?pod=web&format=png":               {400, []string{`format \"png\": want text, mermaid, dot, svg or json`}},
		"GET /v1/dag?pod=web&format=svg":               {200, []string{`\u003csvg`, "image[x]"}},
		"GET /v1/trace?pod=web&kind=pod.start":         {200, []string{`"kind":"pod.start"`}},
		"GET /v1/trace?pod=web&kind=pod.delete":        {400, []string{"no pod.delete of pod default/web-n is remembered"}},
		"GET /v1/journal?pod=web":                      {200, []string{`"text":"file: wanted"`, `"schema":"flowlet.dev/journal/v1"`}},
		"POST /v1/plan?path=/m/a.yaml":                 {400, []string{"/m/a.yaml: file is empty"}},
		"POST /v1/plan?path=/m/a.yaml&remove":          {200, []string{"removed /m/a.yaml"}},
		"POST /v1/plan":                                {400, []string{"needs the path"}},
		"POST /v1/pods":                                {405, nil},
		"GET /v1/nope":                                 {404, nil},
		"GET /v1/pod?pod=" + strings.Repeat("x", 5000): {400, []string{"is not known here"}},
	}
	for request, tt := range tests {
		t.Run(request[:min(len(request), 40)], func(t *testing.T) {
			method, target, _ := strings.Cut(request, " ")
			status, body := ask(agent(), method, target, "")
			require.Equal(t, tt.status, status, body)
			for _, w := range tt.want {
				require.Contains(t, body, w)
			}
		})
	}
}

// Between two steps a stage may get its slot or be lost: why shows it as it is.
func TestWhyShowsWhatTheEngineRemembersNow(t *testing.T) {
	a := agent()
	a.Memo = func(k pod.Key) dag.Memo {
		if k != "u1" {
			return nil
		}
		return dag.Memo{pulling().ID: {Key: dag.Key{Do: "pull", In: 1}, State: dag.Lost, Since: start, Attempt: 1, Class: "image"}}
	}
	for _, target := range []string{"/v1/why?pod=u1", "/v1/pod?pod=u1", "/v1/dag?pod=u1&format=json"} {
		_, body := ask(a, http.MethodGet, target, "")
		require.Contains(t, body, "lost", target)
	}
}

func TestPlanTakesAManifestOfLimitedSize(t *testing.T) {
	status, body := ask(agent(), http.MethodPost, "/v1/plan?path=/m/a.yaml", "kind: Pod")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "/m/a.yaml kind: Pod")
	status, body = ask(agent(), http.MethodPost, "/v1/plan?path=/m/a.yaml", strings.Repeat("#", 12<<20))
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, body, "manifest /m/a.yaml is larger than 10 MiB")
}

func TestPodIsTheStoresOwn(t *testing.T) {
	a := agent()
	before, _ := a.Store.Get("u1")
	copied := before.State.Pod().DeepCopy()
	_, body := ask(a, http.MethodGet, "/v1/pod?pod=web", "")
	require.Equal(t, copied, before.State.Pod(), "showing a pod changes nothing of it")
	var d server.Detail
	require.NoError(t, json.Unmarshal([]byte(body), &d))
	require.Equal(t, "pending", d.Pod.Annotations[server.AnnotationPhase])
	require.Nil(t, d.Pod.DeletionTimestamp)

	gone, _ := pod.Fold(before.State, pod.SpecGone{Source: pod.SourceFile, At: start})
	before.State = gone
	a.Store.Put(before)
	_, body = ask(a, http.MethodGet, "/v1/pod?pod=web", "")
	require.NoError(t, json.Unmarshal([]byte(body), &d))
	require.Equal(t, start.Add(gone.Removal.Grace), d.Pod.DeletionTimestamp.UTC())
	require.EqualValues(t, 30, *d.Pod.DeletionGracePeriodSeconds)
}

func TestPodsThatAreOnlyRememberedAreNotListed(t *testing.T) {
	a := agent()
	s, _ := pod.Fold(nil, pod.Restored{Record: pod.Record{UID: "u7", Name: "was", Namespace: "default", Source: pod.SourceFile}})
	a.Store.Put(podstore.View{Key: "u7", State: s})
	_, body := ask(a, http.MethodGet, "/v1/pods", "")
	require.NotContains(t, body, "u7")
	_, body = ask(a, http.MethodGet, "/v1/node", "")
	require.Contains(t, body, `"pods":2`)
	status, _ := ask(a, http.MethodGet, "/v1/pod?pod=u7", "")
	require.Equal(t, http.StatusOK, status, "but they can be asked about")
}

func TestWhyNode(t *testing.T) {
	a := agent()
	a.Node = func() server.Node {
		return server.Node{Name: "n", Checks: []server.Check{{Name: "ping"}, {Name: "runtime-list", Error: "connection refused"}}}
	}
	a.Queues = func() []dag.Queue[pod.Key] {
		run := []dag.InFlight[pod.Key]{{Ref: pulling(), Since: start}}
		return []dag.Queue[pod.Key]{
			{Class: "image", Row: dag.Class{Slots: 1}, Running: run, Waiting: []dag.Waiter[pod.Key]{{Ref: pulling(), Since: start}}},
			{Class: "mount", Lost: run, Stopped: true},
			{Class: "", Running: run},
		}
	}
	status, body := ask(a, http.MethodGet, "/v1/why-node", "")
	require.Equal(t, http.StatusOK, status)
	var r server.NodeReport
	require.NoError(t, json.Unmarshal([]byte(body), &r))
	r.At = start.Add(90 * 1e9)
	require.Equal(t, `node n

runtime-list
  connection refused

class image  for 90s
  1 of 1 slots are taken; 1 stages wait
  running: image[x] of default/web-n (90s)
  waiting: image[x] of default/web-n (90s)

class mount
  1 calls did not return after their deadline, so nothing more is started; 0 stages wait
  lost: image[x] of default/web-n (90s)
`, r.Text())
}

func TestHealthz(t *testing.T) {
	bad := []server.Check{{Name: "ping"}, {Name: "runtime-list", Error: "connection refused"}}
	tests := map[string]struct {
		target string
		checks []server.Check
		status int
		want   string
	}{
		"fine":             {"/healthz", bad[:1], 200, "ok"},
		"fine, verbose":    {"/healthz?verbose", bad[:1], 200, "[+]ping ok\nhealthz check passed\n"},
		"bad":              {"/healthz", bad, 500, "[+]ping ok\n[-]runtime-list failed: connection refused\nhealthz check failed\n"},
		"bad, verbose":     {"/healthz?verbose", bad, 500, "[+]ping ok\n[-]runtime-list failed: connection refused\nhealthz check failed\n"},
		"somewhere else":   {"/pods", nil, 404, "404 page not found\n"},
		"without a check":  {"/healthz", nil, 200, "ok"},
		"verbose=anything": {"/healthz?verbose=false", bad[:1], 200, "[+]ping ok\nhealthz check passed\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			server.Healthz(func() []server.Check { return tt.checks }).ServeHTTP(w, httptest.NewRequest(http.MethodGet, tt.target, http.NoBody))
			require.Equal(t, tt.status, w.Code)
			body, err := io.ReadAll(w.Body)
			require.NoError(t, err)
			require.Equal(t, tt.want, string(body))
		})
	}
}

func TestPodIsShownAsItIsAskedFor(t *testing.T) {
	a := agent()
	before, _ := a.Store.Get("u1")
	state, spec := *before.State, *before.State.Spec
	spec.Asked = spec.Pod.DeepCopy()
	spec.Asked.Spec.Hostname = "asked"
	state.Spec, before.State = &spec, &state
	a.Store.Put(before)
	_, body := ask(a, http.MethodGet, "/v1/pod?pod=web", "")
	var d server.Detail
	require.NoError(t, json.Unmarshal([]byte(body), &d))
	require.Equal(t, "asked", d.Pod.Spec.Hostname, "what it was given is in the status")
}
