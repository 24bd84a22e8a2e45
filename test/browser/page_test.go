package browser_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/test/browser"
)

// notes are what a tab must not do: complain, or ask another origin.
type notes struct {
	mu       sync.Mutex
	own      string
	problems []string
}

func (n *notes) take(ev any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch e := ev.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, n.own) {
			n.problems = append(n.problems, "asks "+e.Request.URL)
		}
	case *runtime.EventConsoleAPICalled:
		n.problems = append(n.problems, fmt.Sprint("says ", e.Type))
	case *runtime.EventExceptionThrown:
		n.problems = append(n.problems, "throws "+e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		n.problems = append(n.problems, "logs "+e.Entry.Text)
	}
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.problems
}

// open starts agent, page and browser, and shows the list of pods. base is the
// address of the page.
func open(t *testing.T) (site *browser.Site, tab context.Context, base string, seen *notes) {
	t.Helper()
	flowlet := os.Getenv("FLOWLET")
	require.NotEmpty(t, flowlet, "FLOWLET names the binary: run `make browser`")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // what stops them comes after the test
	t.Cleanup(cancel)
	site, err := browser.Start(ctx, flowlet, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, site.Stop()) })
	tab, stop, err := browser.Chromium(ctx)
	require.NoError(t, err)
	t.Cleanup(stop)
	base, _, _ = strings.Cut(site.URL, "?")
	seen = &notes{own: strings.TrimSuffix(base, "ui/")}
	require.NoError(t, chromedp.Listen(tab, seen.take))
	require.NoError(t, chromedp.Do(tab, chromedp.Navigate(site.URL), chromedp.WaitVisible(live)))
	return site, tab, base, seen
}

const live = `#live[data-state="on"]`

func ask[T any](t *testing.T, tab context.Context, expression string) T {
	t.Helper()
	out, err := chromedp.Run(tab, chromedp.Evaluate[T](expression))
	require.NoError(t, err)
	return out
}

func until(t *testing.T, tab context.Context, expression string) {
	t.Helper()
	_, err := chromedp.Run(tab, chromedp.Poll[bool](expression))
	require.NoError(t, err, expression)
}

func TestGraphOfAPodIsDrawn(t *testing.T) {
	site, tab, base, seen := open(t)
	require.NoError(t, site.Until(tab, "shop-node-1", "3/3"))
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1400, 400} {
			require.NoError(t, chromedp.Do(tab, browser.Look(width, 900, scheme), chromedp.Navigate(base+"pod?pod=shop-node-1"), chromedp.WaitVisible(live)))
			for _, stage := range []string{"sandbox", "container[web]", "init[migrate]", "volume[cache]"} {
				shown := fmt.Sprintf(`[...document.querySelectorAll("svg .stage")].some(e => e.textContent.includes(%q) && e.getBoundingClientRect().width > 50)`, stage)
				require.True(t, ask[bool](t, tab, shown), "%s at %d: stage %s", scheme, width, stage)
			}
			wide := ask[int](t, tab, `document.documentElement.scrollWidth`)
			require.LessOrEqual(t, int64(wide), width, "%s: the page is wider than its window", scheme)
		}
	}
	require.Empty(t, seen.all())
}

// A container that its probe has killed shows without a reload.
func TestPageFollowsItsPods(t *testing.T) {
	_, tab, base, seen := open(t)
	require.NoError(t, chromedp.Do(tab, chromedp.Navigate(base+"pod?pod=frail-node-1"), chromedp.WaitVisible(live)))
	_ = ask[bool](t, tab, `window.same = true`)
	restarts := `document.querySelector("#container-frail [data-label=Restarts]").textContent`
	until(t, tab, restarts+` === "1"`)
	require.True(t, ask[bool](t, tab, `window.same === true`), "it is the page that was opened")
	require.Empty(t, seen.all())
}

// Links are reached and followed by keys alone, the skip link first.
func TestPageIsUsableByKeys(t *testing.T) {
	_, tab, _, seen := open(t)
	key := func(keys string) { require.NoError(t, chromedp.Do(tab, chromedp.KeyEvent(keys))) }
	key("\t")
	require.Equal(t, "#page", ask[string](t, tab, `document.activeElement.getAttribute("href")`))
	for range 20 {
		if strings.HasPrefix(ask[string](t, tab, `document.activeElement.getAttribute("href") || ""`), "pod?pod=") {
			break
		}
		key("\t")
	}
	require.NotEqual(t, "none", ask[string](t, tab, `getComputedStyle(document.activeElement).outlineStyle`), "the focus is seen")
	key("\r")
	require.NoError(t, chromedp.Do(tab, chromedp.WaitVisible("#graph-title")))
	require.Empty(t, seen.all())
}

// An agent that is gone is said to be, on the page that is open and on the next.
func TestPageOfAnAgentThatIsGone(t *testing.T) {
	site, tab, base, _ := open(t)
	require.NoError(t, site.StopAgent())
	require.NoError(t, chromedp.Do(tab, chromedp.WaitVisible(`#live[data-state="off"]`)))
	require.NoError(t, chromedp.Do(tab, chromedp.Navigate(base+"queues")))
	require.Contains(t, ask[string](t, tab, `document.body.textContent`), "The agent does not answer")
}
