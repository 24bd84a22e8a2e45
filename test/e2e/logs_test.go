//go:build e2e

package e2e_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// A container prints numbered lines, faster than its log may grow. The files that come of it, read back to back, have
// every line once, also over kills of the agent.
func TestLogsAreRotatedWithoutALostLine(t *testing.T) {
	sawOn(t, node, "rotation of container logs without a lost line, over a kill of the agent")
	const lines = 6000
	a := newAgent(t, node)
	a.config["containerLogMaxSize"], a.config["containerLogMaxFiles"], a.config["containerLogMonitorInterval"] = "4Ki", 1000, "3s"
	a.write("talk.yaml", podOf("talk", fmt.Sprintf(`
restartPolicy: Never
containers: [{name: main, image: IMAGE, args: [log, -every, 4ms, -n, "%d", talks]}]
`, lines)))
	a.start()
	p := a.untilPod("talk", "runs", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodRunning })
	dir := filepath.Join("/var/log/pods", p.Namespace+"_"+p.Name+"_"+string(p.UID), "main")
	parts := func(pattern string) []string {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		return names
	}
	a.until("a log is compressed", func() error {
		if len(parts("0.log.*.gz")) == 0 {
			return os.ErrNotExist
		}
		return nil
	})
	a.kill()
	a.start()
	a.untilPod("talk", "has said all", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodSucceeded })
	require.NotEmpty(t, parts("0.log.*.gz"))
	require.Empty(t, parts("0.log.*.tmp"))
	files := parts("0.log*")
	require.Greater(t, len(files), 3)
	slices.SortFunc(files, func(x, y string) int { // the log itself is the newest
		return strings.Compare(strings.TrimSuffix(x, ".log")+"~", strings.TrimSuffix(y, ".log")+"~")
	})
	next := 1
	for _, name := range files {
		for _, text := range criLines(t, name) {
			require.Equal(t, strconv.Itoa(next)+" talks", text, name)
			next++
		}
	}
	require.Equal(t, lines+1, next)
}

// criLines returns what was logged in a file, which may be compressed.
func criLines(t *testing.T, name string) (out []string) {
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		r, err = gzip.NewReader(f)
		require.NoError(t, err)
	}
	for s := bufio.NewScanner(r); s.Scan(); {
		_, text, ok := strings.Cut(s.Text(), " stdout F ")
		require.True(t, ok, s.Text())
		out = append(out, text)
	}
	return out
}
