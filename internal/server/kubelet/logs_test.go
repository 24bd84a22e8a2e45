package kubelet_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/pod"
	"github.com/flowlet/flowlet/internal/podstore"
)

func (n *node) ask(method, path string) (int, string) {
	n.Helper()
	w := httptest.NewRecorder()
	n.api.Handler().ServeHTTP(w, httptest.NewRequest(method, path, http.NoBody))
	return w.Code, w.Body.String()
}

const (
	line1 = "2026-01-02T03:04:05.1Z stdout F one"
	line2 = "2026-01-02T03:04:06.2Z stderr F two"
	half3 = "2026-01-02T03:04:07.3Z stdout P thr"
	rest3 = "2026-01-02T03:04:07.4Z stdout F ee"
)

func TestContainerLogs(t *testing.T) {
	n := newNode(t)
	n.logFile("a", 1, line1, line2, half3, rest3)
	n.started("c1", 1, pod.Running)
	tests := map[string]string{
		"":                                 "one\ntwo\nthree\n",
		"previous=false&follow=0":          "one\ntwo\nthree\n",
		"tailLines=2":                      "three\n", // the library counts the parts of a line
		"tailLines=0":                      "",
		"tail=3":                           "two\nthree\n",
		"tail=all":                         "one\ntwo\nthree\n",
		"limitBytes=5":                     "one\nt",
		"sinceTime=2026-01-02T03:04:06Z":   "two\nthree\n",
		"sinceSeconds=1":                   "",
		"sinceSeconds=9223372036854775807": "one\ntwo\nthree\n",
		"timestamps=true&tailLines=3":      "2026-01-02T03:04:06.200000000Z two\n2026-01-02T03:04:07.300000000Z three\n",
		"stream=Stdout":                    "one\nthree\n",
		"stream=Stderr":                    "two\n",
		"stream=All&tailLines=1":           "ee\n",
	}
	for query, want := range tests {
		t.Run(query, func(t *testing.T) {
			code, body := n.ask("GET", "/containerLogs/default/web-n/a?"+query)
			require.Equal(t, http.StatusOK, code, body)
			require.Equal(t, want, body)
		})
	}
}

func TestBadParametersOfLogs(t *testing.T) {
	n := newNode(t)
	n.logFile("a", 1, line1)
	n.started("c1", 1, pod.Running)
	tests := map[string]struct {
		code int
		want string
	}{
		"tailLines=x":         {400, `tailLines: \"x\" is not a number`},
		"tail=x":              {400, `tailLines: \"x\" is not a number`},
		"limitBytes=1k":       {400, `limitBytes: \"1k\" is not a number`},
		"sinceTime=yesterday": {400, "sinceTime: "},
		"tailLines=-1":        {422, "tailLines: -1, must be at least 0"},
		"limitBytes=0":        {422, "limitBytes: 0, must be at least 1"},
		"sinceSeconds=0":      {422, "sinceSeconds: 0, must be at least 1"},
		"sinceSeconds=1&sinceTime=2026-01-02T03:04:06Z": {422, "at most one of sinceTime and sinceSeconds"},
		"stream=stdout":                  {422, "must be one of"},
		"stream=Stdout&tailLines=1":      {422, "mutually exclusive"},
		"tailLines=99999999999999999999": {400, "is not a number"},
	}
	for query, tt := range tests {
		t.Run(query, func(t *testing.T) {
			code, body := n.ask("GET", "/containerLogs/default/web-n/a?"+query)
			require.Equal(t, tt.code, code, body)
			require.Contains(t, body, `{"message":"`)
			require.Contains(t, body, tt.want)
		})
	}
}

func waitingFor(reason string) v1.ContainerState {
	return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}
}

func ended(id string) v1.ContainerState {
	return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ContainerID: id}}
}

func TestWhichLogIsMeant(t *testing.T) {
	n := newNode(t)
	n.logFile("a", 0, line1)
	n.logFile("a", 1, line2)
	tests := map[string]struct {
		state, last v1.ContainerState
		query       string
		code        int
		want        string
	}{
		"running":                     {state: v1.ContainerState{Running: &v1.ContainerStateRunning{}}, code: 200, want: "two\n"},
		"terminated":                  {state: ended("sim://c1"), code: 200, want: "two\n"},
		"crash loop":                  {state: waitingFor("CrashLoopBackOff"), last: ended("sim://c1"), code: 200, want: "two\n"},
		"previous":                    {state: v1.ContainerState{Running: &v1.ContainerStateRunning{}}, last: ended("sim://c0"), query: "previous=true", code: 200, want: "one\n"},
		"terminated, unknown, before": {state: ended(""), last: ended("sim://c0"), code: 200, want: "one\n"},
		"no previous": {
			state: v1.ContainerState{Running: &v1.ContainerStateRunning{}}, query: "previous=true", code: 400,
			want: `previous terminated container "a" in pod "web-n" not found` + "\n",
		},
		"terminated without an ID":               {state: ended(""), code: 400, want: `container "a" in pod "web-n" is terminated` + "\n"},
		"terminated before, no ID":               {state: waitingFor("CrashLoopBackOff"), last: ended(""), code: 400, want: `container "a" in pod "web-n" is terminated` + "\n"},
		"creating":                               {state: waitingFor("ContainerCreating"), code: 400, want: `container "a" in pod "web-n" is waiting to start: ContainerCreating` + "\n"},
		"image cannot be pulled":                 {state: waitingFor("ErrImagePull"), code: 400, want: `container "a" in pod "web-n" is waiting to start: image can't be pulled` + "\n"},
		"image pull backs off":                   {state: waitingFor("ImagePullBackOff"), code: 400, want: `container "a" in pod "web-n" is waiting to start: trying and failing to pull image` + "\n"},
		"nothing is known":                       {code: 400, want: `container "a" in pod "web-n" is waiting to start - no logs yet` + "\n"},
		"of a container that is no longer known": {state: ended("sim://c9"), code: 400, want: "unable to retrieve container logs for c9\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n.web(func(v *podstore.View, s *pod.State) {
				for _, attempt := range []uint32{1, 0} { // without the path: as listed
					s.Containers = append(s.Containers, pod.Container{ID: fmt.Sprintf("c%d", attempt), Name: "a", Attempt: attempt, State: pod.Exited})
				}
				v.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "a", ContainerID: "sim://c1", State: tt.state, LastTerminationState: tt.last}}
			})
			code, body := n.ask("GET", "/containerLogs/default/web-n/a?"+tt.query)
			require.Equal(t, tt.code, code, body)
			require.Equal(t, tt.want, body)
		})
	}
}

func TestLogsOfWhatIsNotThere(t *testing.T) {
	n := newNode(t)
	n.started("c1", 1, pod.Running) // and no file
	tests := map[string]struct {
		code int
		want string
	}{
		"/containerLogs/default/nope/a":     {404, `pod "nope" does not exist`},
		"/containerLogs/other/web-n/a":      {404, `pod "web-n" does not exist`},
		"/containerLogs/default/web-n/nope": {404, `container "nope" not found in pod "web-n"`},
		"/containerLogs/default/web-n/b":    {400, `container "b" in pod "web-n" is not available`},
		"/containerLogs/default/web-n/a":    {400, "1.log: no such file or directory"},
		"/containerLogs/default/web-n":      {404, ""},
		"/nope":                             {404, ""},
	}
	for path, tt := range tests {
		t.Run(path, func(t *testing.T) {
			code, body := n.ask("GET", path)
			require.Equal(t, tt.code, code, body)
			require.Contains(t, body, tt.want)
		})
	}
	code, _ := n.ask("POST", "/containerLogs/default/web-n/a")
	require.Equal(t, http.StatusMethodNotAllowed, code)
}

func TestLogsOfAPodWithoutASpec(t *testing.T) {
	n := newNode(t)
	log0, log1 := n.logFile("a", 0, line1), n.logFile("a", 1, line2)
	n.web(func(v *podstore.View, s *pod.State) {
		v.Status, s.Spec = nil, nil
		s.Containers = []pod.Container{{ID: "c1", Name: "a", State: pod.Running, LogPath: log1}, {ID: "c0", Name: "a", State: pod.Exited, LogPath: log0}}
	})
	_, body := n.ask("GET", "/containerLogs/default/web-n/a")
	require.Equal(t, "two\n", body)
	_, body = n.ask("GET", "/containerLogs/default/web-n/a?previous=true")
	require.Equal(t, "one\n", body)
}

// After a restart of the agent, and before the runtime has told of anything,
// there are only files.
func TestLogsBeforeTheRuntimeIsSeen(t *testing.T) {
	n := newNode(t)
	n.logFile("a", 9, line1)
	n.logFile("a", 10, line2)
	require.NoError(t, os.WriteFile(filepath.Join(n.logs, "a", "10.log.20260102-030405"), []byte("rotated"), 0o600))
	n.web(func(*podstore.View, *pod.State) {})
	_, body := n.ask("GET", "/containerLogs/default/web-n/a?tailLines=1")
	require.Equal(t, "two\n", body)
	_, body = n.ask("GET", "/containerLogs/default/web-n/a?previous=true")
	require.Equal(t, "one\n", body)
	code, body := n.ask("GET", "/containerLogs/default/web-n/b")
	require.Equal(t, 400, code)
	require.Equal(t, "container \"b\" in pod \"web-n\" is not available\n", body)
}

func number(i int) string {
	return fmt.Sprintf("%s stdout F line %d", time.Unix(int64(i), 0).UTC().Format(time.RFC3339Nano), i)
}

// follow opens the log and returns its lines, which end with the log's error.
func (n *node) follow(ctx context.Context, query string) <-chan string {
	n.Helper()
	q, err := url.ParseQuery(query)
	require.NoError(n, err)
	r, err := n.client.Logs(ctx, target, q)
	require.NoError(n, err)
	lines := make(chan string)
	go func() {
		defer close(lines)
		defer r.Close()
		s := bufio.NewScanner(r)
		for s.Scan() {
			lines <- s.Text()
		}
		if s.Err() != nil {
			lines <- s.Err().Error()
		}
	}()
	return lines
}

func TestFollowAcrossRotationToTheEnd(t *testing.T) {
	n := newNode(t).serve()
	const rotations, each = 5, 20
	i := 0
	next := func() string { i++; return number(i) }
	path := n.logFile("a", 0, next())
	n.started("c0", 0, pod.Running)
	lines := n.follow(t.Context(), "follow=true")
	require.Equal(t, "line 1", <-lines)
	want := 2
	for r := range rotations {
		for range each {
			n.logFile("a", 0, next())
		}
		old, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		require.NoError(t, os.Rename(path, fmt.Sprintf("%s.%d", path, r)))
		_, err = old.WriteString(next() + "\n") // by a runtime that has not opened the new file yet
		require.NoError(t, err)
		require.NoError(t, old.Close())
		n.logFile("a", 0, next())
		for ; want <= i; want++ {
			require.Equal(t, fmt.Sprintf("line %d", want), <-lines)
		}
	}
	n.logFile("a", 0, next())
	n.started("c0", 0, pod.Exited)
	require.Equal(t, fmt.Sprintf("line %d", i), <-lines)
	_, open := <-lines
	require.False(t, open, "the log ends with the container")
}

func TestFollowOfWhatHasEnded(t *testing.T) {
	n := newNode(t).serve()
	n.logFile("a", 0, line1, line2)
	n.started("c0", 0, pod.Exited)
	r, err := n.client.Logs(t.Context(), target, url.Values{"follow": {"true"}, "tailLines": {"1"}})
	require.NoError(t, err)
	defer r.Close()
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "two\n", string(text))
}

func TestFollowOfWhatTheRuntimeHasNotToldOf(t *testing.T) {
	n := newNode(t).serve()
	n.logFile("a", 0, number(1))
	n.web(func(*podstore.View, *pod.State) {})
	lines := n.follow(t.Context(), "follow=true")
	require.Equal(t, "line 1", <-lines)
	n.logFile("a", 0, number(2))
	require.Equal(t, "line 2", <-lines)
	n.started("c0", 0, pod.Running)
	n.logFile("a", 0, number(3))
	require.Equal(t, "line 3", <-lines)
	n.started("c0", 0, pod.Exited)
	_, open := <-lines
	require.False(t, open, "the log ends with the container")
}

func TestFollowEndsWithThePod(t *testing.T) {
	n := newNode(t).serve()
	n.logFile("a", 0, line1)
	n.started("c0", 0, pod.Running)
	lines := n.follow(t.Context(), "follow=true")
	require.Equal(t, "one", <-lines)
	n.store.Delete("u1")
	_, open := <-lines
	require.False(t, open)
}

func TestFollowEndsWithTheClient(t *testing.T) {
	n := newNode(t).serve()
	n.logFile("a", 0, line1)
	n.started("c0", 0, pod.Running)
	ctx, cancel := context.WithCancel(t.Context())
	lines := n.follow(ctx, "follow=true")
	require.Equal(t, "one", <-lines)
	cancel()
	require.Equal(t, context.Canceled.Error(), <-lines) // and goleak finds nothing of it in the server
}

func TestFollowTellsThatTheAgentEnds(t *testing.T) {
	n := newNode(t).serve()
	n.logFile("a", 0, line1)
	n.started("c0", 0, pod.Running)
	lines := n.follow(t.Context(), "follow=true")
	require.Equal(t, "one", <-lines)
	n.stop(fmt.Errorf("the agent ends"))
	require.Contains(t, <-lines, "EOF", "the log is not over")
}

func TestPods(t *testing.T) {
	n := newNode(t)
	code, body := n.ask("GET", "/pods")
	require.Equal(t, 200, code)
	require.Contains(t, body, `"name":"web-n"`)
	code, _ = n.ask("POST", "/pods")
	require.Equal(t, http.StatusMethodNotAllowed, code)
}

// What a log holds is nobody's business: lines that cannot be read are
// dropped without a word.
func TestALineThatCannotBeRead(t *testing.T) {
	n := newNode(t)
	n.logFile("a", 0, line1, "sekret-4711 without a form", strings.Replace(line2, "two", "three", 1))
	n.started("c0", 0, pod.Running)
	stderr, restore := captureStderr(t)
	_, body := n.ask("GET", "/containerLogs/default/web-n/a")
	restore()
	require.Equal(t, "one\nthree\n", body)
	require.NotContains(t, stderr(), "sekret-4711")
}

func TestALogOfAnotherForm(t *testing.T) {
	n := newNode(t)
	n.logFile("a", 0, "just text")
	n.started("c0", 0, pod.Running)
	code, body := n.ask("GET", "/containerLogs/default/web-n/a")
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, body, "unsupported log format")
}

// captureStderr collects what the libraries print there.
func captureStderr(t *testing.T) (text func() string, restore func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	old := os.Stderr
	os.Stderr = f
	return func() string {
			b, err := os.ReadFile(f.Name())
			require.NoError(t, err)
			return string(b)
		}, func() {
			os.Stderr = old
			_ = f.Close()
		}
}
