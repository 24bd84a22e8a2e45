package ui_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/server/ui"
)

func TestPages(t *testing.T) {
	h := ui.Handler(&node{}, &ui.Bell{})
	for path, want := range map[string][]string{
		"/ui/":                    {"<b>1</b> on this node", `href="pod?pod=u1"`, "ImagePullBackOff", "image[x:1]", "failed for", "attempt 2 failed", "/m/a.yaml", "The pod goes on as the file last said it."},
		"/ui/pod?pod=u1":          {"Waits for", `class="stage failed"`, `href="#stage-image_x_1_"`, `id="stage-image_x_1_"`, "Last start", "ready after 4.00s", "Critical path", "for a slot of class image", "2.00s", "50%", "×3"},
		"/ui/pod?pod=node%2flogs": {"Graph", `aria-current="page">Node`},
		"/ui/node":                {"runtime not ready", "runtime-list", "node/logs", `href="pod?pod=node%2Flogs"`, "every 10s", "1.0 of 10.0 GiB left", "99% used"},
		"/ui/queues":              {"1 of 1 slots taken, 1 waiting", "number 1", "(others)"},
	} {
		t.Run(path, func(t *testing.T) {
			status, body, header := get(t, h, path)
			require.Equal(t, http.StatusOK, status)
			for _, w := range want {
				require.Contains(t, body, w)
			}
			require.NotContains(t, body, "/m/fine.yaml")
			require.Equal(t, "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", header.Get("Content-Security-Policy"))
		})
	}
}

// What a pod says of itself stays text, and nothing needs what the policy for content forbids.
func TestPagesHoldNothingThatRunsOrLoads(t *testing.T) {
	h := ui.Handler(&node{}, &ui.Bell{})
	for _, path := range []string{"/ui/", "/ui/pod?pod=u1", "/ui/pod?pod=%3Cscript%3Ealert(1)", "/ui/node", "/ui/queues"} {
		_, body, _ := get(t, h, path)
		require.NotContains(t, body, "<script>", path)
		require.NotContains(t, body, " style=", path)
		require.NotContains(t, body, "<style", path)
		require.NotContains(t, body, "src=\"/", path)
		require.NotContains(t, strings.ReplaceAll(body, `xmlns="http://www.w3.org/`, ""), "http", path)
	}
}

func TestEmptyNode(t *testing.T) {
	h := ui.Handler(&node{empty: true}, &ui.Bell{})
	_, body, _ := get(t, h, "/ui/")
	require.Contains(t, body, "No pods on this node.")
	_, body, _ = get(t, h, "/ui/queues")
	require.Contains(t, body, "Nothing is at work")
}

func TestWhatIsNotThere(t *testing.T) {
	h := ui.Handler(&node{}, &ui.Bell{})
	status, body, _ := get(t, h, "/ui/pod?pod=nope")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, body, "pod nope is not known here")
	status, body, _ = get(t, h, "/ui/secret")
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, body, "There is no such page")
}

func TestStatic(t *testing.T) {
	h := ui.Handler(&node{}, &ui.Bell{})
	for path, kind := range map[string]string{"page.css": "text/css", "graph.css": "text/css", "live.js": "javascript", "idiomorph.min.js": "javascript", "icon.svg": "image/svg+xml"} {
		status, body, header := get(t, h, "/ui/static/"+path)
		require.Equal(t, http.StatusOK, status, path)
		require.NotEmpty(t, body, path)
		require.Contains(t, header.Get("Content-Type"), kind)
	}
	status, _, _ := get(t, h, "/ui/static/../handler.go")
	require.NotEqual(t, http.StatusOK, status)
}
