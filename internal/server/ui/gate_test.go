package ui_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/server"
	"github.com/flowlet/flowlet/internal/server/ui"
)

const host = "127.0.0.1:4711"

// knock sends a request to a gate; edit changes it.
func knock(g http.Handler, path string, edit func(r *http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://"+host+path, http.NoBody)
	if edit != nil {
		edit(r)
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

// open visits the gate's address and returns the cookie.
func open(t *testing.T, g *ui.Gate) *http.Cookie {
	t.Helper()
	w := knock(g, strings.TrimPrefix(g.URL(), "http://"+host), nil)
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Equal(t, "/ui/", w.Header().Get("Location"))
	c := w.Result().Cookies()
	require.Len(t, c, 1)
	require.True(t, c[0].HttpOnly)
	require.Equal(t, http.SameSiteLaxMode, c[0].SameSite)
	return c[0]
}

func TestGateLetsOnlyItsBrowserThrough(t *testing.T) {
	inside := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "inside "+r.URL.Path+r.Header.Get("Cookie"))
	})
	g := ui.NewGate(host, inside)
	address := strings.TrimPrefix(g.URL(), "http://"+host)
	require.Equal(t, http.StatusForbidden, knock(g, "/ui/", nil).Code, "without anything")
	require.Equal(t, http.StatusForbidden, knock(g, "/ui/?token=", nil).Code)
	require.Equal(t, http.StatusForbidden, knock(g, "/ui/?token=WRONG", nil).Code)
	require.Equal(t, http.StatusForbidden, knock(g, address, func(r *http.Request) { r.Host = "rebound.example:4711" }).Code)
	cookie := open(t, g)
	require.Equal(t, http.StatusForbidden, knock(g, address, nil).Code, "the token is used up")
	require.Equal(t, http.StatusForbidden, knock(g, "/ui/?token=", nil).Code, "and no token is none")

	in := func(edit func(r *http.Request)) func(r *http.Request) {
		return func(r *http.Request) {
			r.AddCookie(cookie)
			if edit != nil {
				edit(r)
			}
		}
	}
	w := knock(g, "/ui/pod?pod=a", in(nil))
	require.Equal(t, "inside /ui/pod", w.Body.String(), "the cookie stays here")
	require.Equal(t, http.StatusOK, knock(g, "/ui/", in(func(r *http.Request) { r.Header.Set("Origin", "http://"+host) })).Code)
	require.Equal(t, http.StatusSeeOther, knock(g, "/", in(nil)).Code)
	require.Equal(t, http.StatusSeeOther, knock(g, address, in(nil)).Code, "a bookmark of the address")
	for name, edit := range map[string]func(r *http.Request){
		"another name for this address": func(r *http.Request) { r.Host = "rebound.example:4711" },
		"localhost":                     func(r *http.Request) { r.Host = "localhost:4711" },
		"a page of another origin":      func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"an origin that is hidden":      func(r *http.Request) { r.Header.Set("Origin", "null") },
		"a request to change something": func(r *http.Request) { r.Method = http.MethodPost },
		"another path of the agent":     func(r *http.Request) { r.URL.Path = "/exec/default/web/a" },
		"the local API":                 func(r *http.Request) { r.URL.Path = "/v1/pods" },
	} {
		require.Equal(t, http.StatusForbidden, knock(g, "/ui/", in(edit)).Code, name)
	}
	forged := *cookie
	forged.Value = "x"
	require.Equal(t, http.StatusForbidden, knock(g, "/ui/", func(r *http.Request) { r.AddCookie(&forged) }).Code)
}

func TestProxySaysWhenNoAgentAnswers(t *testing.T) {
	root := t.TempDir()
	h := ui.Proxy(server.NewClient(root))
	w := knock(h, "/ui/pod?pod=a", nil)
	require.Equal(t, http.StatusBadGateway, w.Code)
	require.Contains(t, w.Body.String(), "The agent does not answer")
	require.Contains(t, w.Body.String(), "no agent answers on "+root)
	require.Contains(t, w.Body.String(), `href="static/page.css"`)
	require.Equal(t, http.StatusOK, knock(h, "/ui/static/page.css", nil).Code, "what the page looks like does not need the agent")
}

func TestProxyAsksTheAgent(t *testing.T) {
	root := t.TempDir()
	l, err := server.ListenLocal(root)
	require.NoError(t, err)
	agent := &httptest.Server{Listener: l, Config: &http.Server{Handler: ui.Handler(&node{}, &ui.Bell{})}} //nolint:gosec // of a test
	agent.Start()
	defer agent.Close()
	w := knock(ui.Proxy(server.NewClient(root)), "/ui/", nil)
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "ImagePullBackOff")
}
