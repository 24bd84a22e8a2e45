package scenarios_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/flowlet/flowlet/cri/crisim"
	"github.com/flowlet/flowlet/dag"
	"github.com/flowlet/flowlet/internal/pod"
	chores "github.com/flowlet/flowlet/stages/node"
)

// logLines reads a container's log with all that was rotated, oldest first,
// and returns what was logged.
func logLines(n *node, pattern string) (lines []string, files int) {
	n.Helper()
	names, err := filepath.Glob(filepath.Join(n.logs, pattern))
	require.NoError(n, err)
	slices.SortFunc(names, func(a, b string) int { // the log itself is the newest
		return strings.Compare(strings.TrimSuffix(a, ".log")+"~", strings.TrimSuffix(b, ".log")+"~")
	})
	for _, name := range names {
		f, err := os.Open(name)
		require.NoError(n, err)
		var r io.Reader = f
		if strings.HasSuffix(name, ".gz") {
			r, err = gzip.NewReader(f)
			require.NoError(n, err)
		}
		for s := bufio.NewScanner(r); s.Scan(); {
			_, text, _ := strings.Cut(s.Text(), " stdout F ")
			lines = append(lines, text)
		}
		require.NoError(n, f.Close())
	}
	return lines, len(names)
}

// TestNoLineIsLostWhileLogsAreRotated: a container prints numbered lines, logs
// are rotated, the runtime fails and loses answers, and the agent is killed.
func TestNoLineIsLostWhileLogsAreRotated(t *testing.T) {
	s := setup{logs: t.TempDir(), sim: crisim.Config{Logs: crisim.Files{}}}
	scenario(t, s, func(n *node) {
		n.write("web", manifest("web", does(`{"web": {"log": [{"text": "line {n}", "every": "50ms"}]}}`)))
		n.until(time.Minute, "it runs", func() bool { return n.phase("web") == "Running" })
		for i, do := range []crisim.Action{
			crisim.Slow(0), crisim.Fail(codes.Internal, "no descriptors left"), crisim.LoseReply(), crisim.Late(time.Second), crisim.SlowReply(time.Minute),
		} {
			fault := n.sim.Inject(crisim.Fault{Method: "ReopenContainerLog", Count: 2, Do: do})
			n.until(2*time.Minute, "a log is begun anew in vain", func() bool { return fault.Hits() > 0 })
			if i%2 == 1 {
				n.kill()
				n.pass(3 * time.Second)
				n.start()
			}
			n.pass(time.Minute)
			fault.Release()
		}
		n.pass(time.Minute)
		lines, files := logLines(n, "*_web-n1_*/web/0.log*")
		require.Greater(n, files, 10)
		for i, line := range lines {
			require.Equal(n, fmt.Sprintf("line %d", i+1), line)
		}
		require.Greater(n, len(lines), 20*300)
		v, err := n.agent.Store.Find("node/logs")
		require.NoError(n, err)
		require.Equal(n, dag.Done, v.Memo[dag.ID{Kind: chores.KindLogLook}].State)
		require.Equal(n, "every 10s", v.State.Chore.Why)
		require.NotEmpty(n, n.agent.Journal.Episodes(pod.ChoreKey("logs")))
		require.Empty(n, n.agent.Journal.Episodes(pod.ChoreKey("nothing")))
	})
}
