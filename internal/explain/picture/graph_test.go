package picture_test

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/explain"
	"github.com/flowlet/flowlet/internal/explain/picture"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func start() []explain.Stage {
	since := now.Add(-1500 * time.Millisecond)
	return []explain.Stage{
		{ID: "observe", Kind: "observe", State: explain.StateNew},
		{ID: "admit", Kind: "admit", Need: []string{"observe"}, State: "done", Since: since},
		{ID: "image[registry.example/a/very/long/name:1]", Kind: "image", Of: "registry.example/a/very/long/name:1", State: "failed", Since: since, Attempt: 2, Error: `<b>"no" & </svg>`},
		{ID: "stop[a]", Kind: "stop", Of: "a", Need: []string{"admit"}, State: explain.StateNew},
		{ID: "sandbox", Kind: "sandbox", Need: []string{"admit", "stop[a]"}, State: "running", Since: since},
		{ID: "container[a]", Kind: "container", Of: "a", Need: []string{"admit", "sandbox", "image[registry.example/a/very/long/name:1]"}, State: "waiting", Since: since},
		{ID: "container[b]", Kind: "container", Of: "b", Need: []string{"sandbox"}, After: []string{"container[a]"}, State: "held", OnTime: true, Since: since},
	}
}

func draw(t *testing.T, stages []explain.Stage) string {
	t.Helper()
	out, err := picture.Draw(t.Context(), now, stages, picture.SVG)
	require.NoError(t, err)
	d := xml.NewDecoder(strings.NewReader(out))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err, out)
	}
}

func TestGraphShowsStagesWithStateAndAge(t *testing.T) {
	out := draw(t, start())
	for _, want := range []string{
		`class="stage running"`, ">sandbox<", ">running 1.50s<", `class="stage failed"`, ">failed 1.50s<", `class="stage due"`,
		"image[…y/long/name:1]", "<style>", "prefers-color-scheme",
	} {
		require.Contains(t, out, want)
	}
	require.Contains(t, out, "attempt 2: &lt;b&gt;&#34;no&#34; &amp; &lt;/svg&gt;")
	require.NotContains(t, out, "observe", "there is nothing to do for it")
}

// An edge that a longer way implies is left out, and one that leads through a stage that is not shown is not lost.
func TestGraphShowsEachWayOnce(t *testing.T) {
	out := draw(t, start())
	require.Equal(t, 3, strings.Count(out, `class="edge need"`), "admit → sandbox → container[a] ← image; the way to container[b] leads over container[a]")
	require.Equal(t, 1, strings.Count(out, `class="edge after"`))
}

func TestGraphIsTheSameEachTime(t *testing.T) {
	require.Equal(t, draw(t, start()), draw(t, start()))
}

func TestGraphOfNothing(t *testing.T) {
	require.Contains(t, draw(t, nil), "<svg")
	require.NotContains(t, draw(t, []explain.Stage{{ID: "status", State: explain.StateNew}}), "stage new")
}

func TestGraphInAPageHasLinksAndNoStyle(t *testing.T) {
	var a picture.Artist
	for range 2 { // the second comes from memory
		out, err := a.Graph(t.Context(), now, start(), func(id string) string { return "#" + id })
		require.NoError(t, err)
		require.Contains(t, string(out), `<a href="#sandbox">`)
		require.NotContains(t, string(out), "<style")
	}
}

func TestGraphGivesUpWithItsReader(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the reader is gone"))
	_, err := picture.Draw(ctx, now, start(), picture.SVG)
	require.ErrorContains(t, err, "arranging the graph: ")
	require.ErrorContains(t, err, "the reader is gone")
}

func TestOtherFormats(t *testing.T) {
	out, err := picture.Draw(t.Context(), now, start(), explain.Mermaid)
	require.NoError(t, err)
	require.Contains(t, out, "flowchart LR")
	_, err = picture.Draw(t.Context(), now, start(), "png")
	require.EqualError(t, err, `format "png": want text, mermaid, dot, svg or json`)
}
