package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flowlet/flowlet/internal/server"
)

// fakeAgent answers on a local socket: with the pod, and with what a test
// says to all other paths. It returns the root directory and what was asked.
func fakeAgent(t *testing.T, p *v1.Pod, answer http.HandlerFunc) (root string, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var paths []string
	root = t.TempDir()
	l, err := server.ListenLocal(root)
	require.NoError(t, err)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/pod" {
			_ = json.NewEncoder(w).Encode(server.Detail{Pod: p})
			return
		}
		mu.Lock()
		paths = append(paths, r.URL.RequestURI())
		mu.Unlock()
		answer(w, r)
	})}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	return root, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return paths
	}
}

func aPod(annotated string) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-n", UID: "u1"},
		Spec: v1.PodSpec{
			InitContainers: []v1.Container{{Name: "setup"}},
			Containers:     []v1.Container{{Name: "a"}, {Name: "b", Stdin: true, TTY: true}},
		},
	}
	if annotated != "" {
		p.Annotations = map[string]string{defaultContainer: annotated}
	}
	return p
}

func TestLogs(t *testing.T) {
	const guess = "Container a, of setup, a, b\n"
	tests := map[string]struct {
		annotated string
		args      []string
		asked     string
		out       string
	}{
		"plain":                   {asked: "/containerLogs/default/web-n/a", out: guess + "one\ntwo\n"},
		"container named":         {args: []string{"-c", "b"}, asked: "/containerLogs/default/web-n/b", out: "one\ntwo\n"},
		"container annotated":     {annotated: "b", asked: "/containerLogs/default/web-n/b", out: "one\ntwo\n"},
		"annotation of none":      {annotated: "nope", asked: "/containerLogs/default/web-n/a", out: guess + "one\ntwo\n"},
		"everything":              {args: []string{"-c", "a", "-p", "-f", "--timestamps", "--tail", "0", "--limit-bytes", "9", "--since", "1500ms"}, asked: "/containerLogs/default/web-n/a?follow=true&limitBytes=9&previous=true&sinceSeconds=2&tailLines=0&timestamps=true", out: "one\ntwo\n"},
		"since a time":            {args: []string{"-c", "a", "--since-time", "2026-01-02T03:04:05Z"}, asked: "/containerLogs/default/web-n/a?sinceTime=2026-01-02T03%3A04%3A05Z", out: "one\ntwo\n"},
		"all of the log, in full": {args: []string{"-c", "a", "--tail", "-1"}, asked: "/containerLogs/default/web-n/a", out: "one\ntwo\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			root, asked := fakeAgent(t, aPod(tt.annotated), func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("one\ntwo\n")) })
			out, err := flowlet(t, append([]string{"logs", "web", "--root-dir", root}, tt.args...)...)
			require.NoError(t, err)
			require.Equal(t, tt.out, out)
			require.Equal(t, []string{tt.asked}, asked())
		})
	}
}

func TestLogsOfAllContainers(t *testing.T) {
	root, asked := fakeAgent(t, aPod(""), func(w http.ResponseWriter, r *http.Request) {
		switch filepath.Base(r.URL.Path) {
		case "setup":
			http.Error(w, "it waits", http.StatusBadRequest)
		case "b":
			_, _ = w.Write([]byte("no newline"))
		default:
			_, _ = w.Write([]byte("one\ntwo\n"))
		}
	})
	out, err := flowlet(t, "logs", "web", "--root-dir", root, "--all-containers")
	require.EqualError(t, err, "it waits")
	require.Equal(t, "[pod/web-n/a] one\n[pod/web-n/a] two\n[pod/web-n/b] no newline", out)
	require.Len(t, asked(), 3)
}

func TestALogThatIsBrokenOff(t *testing.T) {
	root, _ := fakeAgent(t, aPod(""), func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("one\n"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	for _, all := range []string{"--container=a", "--all-containers"} {
		out, err := flowlet(t, "logs", "web", "--root-dir", root, all)
		require.ErrorContains(t, err, "was broken off: unexpected EOF")
		require.Contains(t, out, "one\n")
	}
}

func TestCommandLinesThatReachNowhere(t *testing.T) {
	root, asked := fakeAgent(t, aPod(""), func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `container not found ("a")`, http.StatusInternalServerError)
	})
	found := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "found"}}
	bare, _ := fakeAgent(t, found, http.NotFound)
	tests := map[string]struct {
		args []string
		want string
		sent bool
	}{
		"logs of nothing":            {args: []string{"logs"}, want: "flowlet logs needs one POD"},
		"since twice":                {args: []string{"logs", "web", "--since", "1s", "--since-time", "x"}, want: "[since since-time]"},
		"a time that is none":        {args: []string{"logs", "web", "--since-time", "noon"}, want: `--since-time "noon": use a time such as`},
		"since nothing":              {args: []string{"logs", "web", "--since", "0s"}, want: "--since 0s: use a duration above 0"},
		"fewer lines than none":      {args: []string{"logs", "web", "--tail", "-2"}, want: "--tail -2: use a number of lines"},
		"no bytes":                   {args: []string{"logs", "web", "--limit-bytes", "0"}, want: "--limit-bytes 0: use a number above 0"},
		"one container and all":      {args: []string{"logs", "web", "-c", "a", "--all-containers"}, want: "[all-containers container]"},
		"logs of a pod without spec": {args: []string{"logs", "found", "--root-dir", bare}, want: "pod default/found has no spec here: name the container with -c"},
		"logs of a wrong container":  {args: []string{"logs", "web", "-c", "x"}, want: `container "x" not found in pod default/web-n: it has setup, a, b`},
		"exec without a command":     {args: []string{"exec", "web"}, want: "flowlet exec needs one POD and, after --, a command"},
		"exec without the dashes":    {args: []string{"exec", "web", "ls"}, want: "flowlet exec needs one POD and, after --, a command"},
		"exec without a pod":         {args: []string{"exec", "--", "ls"}, want: "flowlet exec needs one POD and, after --, a command"},
		"exec that is refused":       {args: []string{"exec", "web", "--", "ls"}, want: `container not found ("a")`, sent: true},
		"attach of nothing":          {args: []string{"attach"}, want: "flowlet attach needs one POD"},
		"attach without input":       {args: []string{"attach", "web", "-i"}, want: "container a takes no input: its spec would need stdin: true"},
		"forward of no port":         {args: []string{"port-forward", "web"}, want: "needs one POD and at least one port"},
		"forward of a bad port":      {args: []string{"port-forward", "web", "http"}, want: `port "http": no container of pod default/web-n has a port of that name; it has []`},
		"forward that is refused":    {args: []string{"port-forward", "web", ":80"}, want: `container not found ("a")`, sent: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := len(asked())
			args := tt.args
			if len(args) > 1 && args[0] != "exec" && name != "logs of a pod without spec" {
				args = append(args, "--root-dir", root)
			} else if args[0] == "exec" {
				args = append([]string{"exec", "--root-dir", root}, args[1:]...)
			}
			_, err := flowlet(t, args...)
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, tt.sent, len(asked()) > before)
		})
	}
}

func TestFittingAnAttach(t *testing.T) {
	tests := map[string]struct {
		container string
		in, want  streamFlags
		note      string
	}{
		"a terminal that is there":    {container: "b", in: streamFlags{true, true}, want: streamFlags{true, true}},
		"a terminal not asked for":    {container: "b", in: streamFlags{true, false}, want: streamFlags{true, true}},
		"a terminal that is missing":  {container: "a", in: streamFlags{false, true}, note: "container a has no terminal; going on without\n"},
		"a container not in the spec": {container: "x", in: streamFlags{true, true}, want: streamFlags{true, true}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var notes buffer
			s := tt.in
			require.NoError(t, s.fit(aPod(""), tt.container, &notes))
			require.Equal(t, tt.want, s)
			require.Equal(t, tt.note, string(notes))
		})
	}
}

type buffer []byte

func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func TestATerminalThatIsNone(t *testing.T) {
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	_, err = openTerminal(f)
	require.ErrorContains(t, err, "taking the terminal: ")
}
