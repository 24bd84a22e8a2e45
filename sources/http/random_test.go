package http_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/flowlet/flowlet/internal/manifest"
	"github.com/flowlet/flowlet/sources/http"
)

// TestRandomAnswers: whatever a server serves, a name and a UID are never set
// twice at a time, nothing is gone that was not set, an answer that is not
// understood changes nothing, and the same answer again changes nothing.
func TestRandomAnswers(t *testing.T) {
	pods := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		name, image := rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "name"), fmt.Sprint(rapid.IntRange(0, 2).Draw(t, "image"))
		if n := rapid.IntRange(0, 4).Draw(t, "uid"); n < 2 {
			return pod(name, image, uid(fmt.Sprint("u-", n)))
		}
		return pod(name, image)
	}), 0, 4)
	rapid.Check(t, func(rt *rapid.T) {
		answers := rapid.SliceOfN(pods, 1, 8).Draw(rt, "answers")
		broken := rapid.SliceOfN(rapid.Bool(), 8, 8).Draw(rt, "broken")
		in(t, list(), func(t *testing.T, w *world) {
			live := map[types.UID]string{}
			for i, a := range answers {
				body := list(a...)
				if broken[i] {
					body = body[:len(body)-1]
				}
				w.put(body)
				require.Equal(t, broken[i], w.source.State().Err != nil)
				if i > 0 {
					require.False(t, broken[i] && len(w.updates) > 0, "%d updates of a broken answer", len(w.updates))
				}
				follow(t, live, w)
				require.True(t, broken[i] || (len(live) == 0) == (len(a) == 0))
				w.pass(http.DefaultPeriod)
				require.Empty(t, w.told(), "it flaps")
			}
		})
	})
}

// follow folds what was told into live.
func follow(t *testing.T, live map[types.UID]string, w *world) {
	t.Helper()
	for _, u := range w.updates {
		switch u.Kind {
		case manifest.Gone:
			require.Equal(t, u.FullName, live[u.UID], "gone but never set")
			delete(live, u.UID)
		case manifest.Set:
			for other, name := range live {
				require.Equal(t, other == u.UID, name == u.FullName, "%s and %s", name, u.FullName)
			}
			live[u.UID] = u.FullName
		}
	}
	w.updates = nil
}
