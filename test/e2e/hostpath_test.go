//go:build e2e

package e2e_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
)

// A host path is checked for its type, and made where the type says so. One that does not fit holds its pod up, which
// starts as soon as the path is there.
func TestHostPathTypes(t *testing.T) {
	a := newAgent(t, node)
	dir := filepath.Join(a.dir, "host")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("from the host\n"), 0o644))
	a.write("good.yaml", podOf("good", strings.ReplaceAll(`
restartPolicy: Never
containers:
- {name: reads, image: IMAGE, args: [cat, /file], volumeMounts: [{name: file, mountPath: /file}]}
- {name: writes, image: IMAGE, args: [write, /new/x, to the host], volumeMounts: [{name: new, mountPath: /new}]}
- {name: fills, image: IMAGE, args: [write, /made, made], volumeMounts: [{name: made, mountPath: /made}]}
volumes:
- {name: file, hostPath: {path: DIR/file, type: File}}
- {name: new, hostPath: {path: DIR/new/deep, type: DirectoryOrCreate}}
- {name: made, hostPath: {path: DIR/made, type: FileOrCreate}}
`, "DIR", dir)))
	a.write("late.yaml", podOf("late", strings.ReplaceAll(`
containers: [{name: main, image: IMAGE, args: [sleep], volumeMounts: [{name: late, mountPath: /late}]}]
volumes: [{name: late, hostPath: {path: DIR/late, type: Directory}}]
`, "DIR", dir)))
	a.start()

	p := a.untilPod("good", "has succeeded", hasSucceeded)
	require.Equal(t, "from the host\n", a.output(p, "reads"))
	for path, want := range map[string]string{"new/deep/x": "to the host\n", "made": "made\n"} {
		b, err := os.ReadFile(filepath.Join(dir, path))
		require.NoError(t, err)
		require.Equal(t, want, string(b))
	}
	info, err := os.Stat(filepath.Join(dir, "new/deep"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o755), info.Mode().Perm())

	a.until("why names the missing directory", func() error {
		out, _ := a.run("why", "late")
		return missing(out, filepath.Join(dir, "late"))
	})
	p = a.untilPod("late", "is pending", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodPending })
	require.Equal(t, "ContainerCreating", status(p, "main").State.Waiting.Reason)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "late"), 0o755))
	a.untilPod("late", "is ready", isReady)
}
