package ui_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/server/ui"
)

// screen keeps what was sent; it may be read meanwhile.
type screen struct {
	*httptest.ResponseRecorder
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), what)
}

// stream reads a page until the test ends.
func stream(t *testing.T, n *node, bell *ui.Bell, path string) *screen {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &screen{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
	r.Header.Set("Accept", "text/event-stream")
	done := make(chan struct{})
	go func() {
		defer close(done)
		ui.Handler(n, bell).ServeHTTP(w, r)
	}()
	t.Cleanup(func() { cancel(); <-done })
	synctest.Wait()
	return w
}

func TestStreamSendsThePageWhenSomethingChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, bell := &node{}, &ui.Bell{}
		w := stream(t, n, bell, "/ui/pod?pod=u1")
		require.Equal(t, 1, w.count("event: page\n"), "the first comes at once")
		require.NotZero(t, w.count("data: <section"))
		for range 100 { // within the pause, however many: one more
			bell.Ring()
		}
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, 2, w.count("event: page\n"))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, 2, w.count("event: page\n"), "nothing has changed")
		bell.Moved("u1", dag.ID{}, dag.Entry{}, dag.Entry{})
		synctest.Wait()
		require.Equal(t, 3, w.count("event: page\n"))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, 4, w.count("event: page\n"), "what counts down is sent again")
	})
}

func TestStreamTellsThatAPodIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, bell := &node{}, &ui.Bell{}
		w := stream(t, n, bell, "/ui/pod?pod=u1")
		n.gone.Store(true)
		time.Sleep(time.Second)
		bell.Ring()
		synctest.Wait()
		require.Equal(t, 1, w.count("event: gone\ndata: pod u1 is not known here\n"))
	})
}

func TestBellForgetsWhoHasStopped(t *testing.T) {
	var b ui.Bell
	rang, stop := b.Listen()
	b.Ring()
	b.Ring() // does not block
	<-rang
	stop()
	b.Ring()
	require.Empty(t, rang)
}
