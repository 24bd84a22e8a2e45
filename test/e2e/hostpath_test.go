//go:build e2e

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// A host path that does not fit its type holds its pod up, which starts as soon as the path is there.
func TestHostPathThatComesLater(t *testing.T) {
	sawOn(t, node, "a host path that comes later")
	a := newAgent(t, node)
	dir := filepath.Join(a.dir, "host")
	a.write("late.yaml", podOf("late", strings.ReplaceAll(`
containers: [{name: main, image: IMAGE, args: [sleep], volumeMounts: [{name: late, mountPath: /late}]}]
volumes: [{name: late, hostPath: {path: DIR/late, type: Directory}}]
`, "DIR", dir)))
	a.start()
	a.until("why names the missing directory", func() error {
		out, _ := a.run("why", "late")
		return missing(out, filepath.Join(dir, "late"))
	})
	p := a.untilPod("late", "is pending", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodPending })
	require.Equal(t, "ContainerCreating", status(p, "main").State.Waiting.Reason)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "late"), 0o755))
	a.untilPod("late", "is ready", isReady)
}
