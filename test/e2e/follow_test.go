//go:build e2e

package e2e_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// Who follows a log sees every line once while its files are rotated, and is told of the end.
func TestFollowAcrossRealRotation(t *testing.T) {
	const last = 3000
	a := newAgent(t, node)
	a.config["containerLogMaxSize"], a.config["containerLogMaxFiles"], a.config["containerLogMonitorInterval"] = "4Ki", 1000, "3s"
	a.write("talk.yaml", podOf("talk", fmt.Sprintf(`
restartPolicy: Never
containers: [{name: main, image: IMAGE, args: [log, -every, 4ms, -n, "%d", talks]}]
`, last)))
	a.start()
	p := a.untilPod("talk", "runs", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodRunning })
	cmd := a.reaching("logs", "talk", "-f")
	lines := started(t, cmd)
	for i := 1; i <= last; i++ {
		require.Equal(t, fmt.Sprintf("%d talks", i), line(t, lines))
	}
	require.False(t, lines.Scan(), "the log ends with its container")
	require.NoError(t, cmd.Wait())
	rotated, err := filepath.Glob(filepath.Join("/var/log/pods", p.Namespace+"_"+p.Name+"_"+string(p.UID), "main", "0.log.*"))
	require.NoError(t, err)
	require.Greater(t, len(rotated), 1)
	a.saw("`logs -f` across rotations without a lost line")
}
