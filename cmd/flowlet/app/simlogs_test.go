package app_test

import (
	"io"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/internal/server"
	"github.com/flowlet/flowlet/internal/server/remote"
)

const talking = `apiVersion: v1
kind: Pod
metadata:
  name: talk
  annotations:
    sim.flowlet.dev/containers: '{"a": {"log": [{"text": "hello {n}"}]}}'
spec:
  containers: [{name: a, image: example.com/app:1}]
`

// Logs of the embedded simulated runtime are files as those of others, go with their pod, and do not outlive the
// runtime; what else lies there is not touched.
func TestLogsOfTheSimulatedRuntime(t *testing.T) {
	root := t.TempDir()
	kept, left := filepath.Join(root, "logs", "mine"), filepath.Join(root, "logs", "default_old_u1")
	require.NoError(t, os.MkdirAll(kept, 0o700))
	require.NoError(t, os.MkdirAll(left, 0o700))
	d := start(t, root)
	require.NoDirExists(t, left)
	d.write("talk.yaml", talking)
	d.running("talk")
	p, err := d.client.Pod(t.Context(), "talk")
	require.NoError(t, err)

	text := ""
	d.eventually("it has logged", func() bool {
		r, err := remote.NewClient(filepath.Join(root, server.SocketName)).Logs(t.Context(), remote.Target{Namespace: "default", Pod: "talk-n", Container: "a"}, url.Values{})
		if err != nil {
			text = err.Error()
			return false
		}
		defer r.Close()
		b, err := io.ReadAll(r)
		text = string(b)
		return err == nil && text != ""
	})
	require.Equal(t, "hello 1\n", text)

	dir := filepath.Join(root, "logs", "default_talk-n_"+string(p.Pod.UID))
	require.DirExists(t, dir)
	require.NoError(t, os.Remove(filepath.Join(d.dir, "talk.yaml")))
	d.eventually("the pod is gone", func() bool { _, err := d.client.Pod(t.Context(), string(p.Pod.UID)); return err != nil })
	require.NoDirExists(t, dir)
	require.DirExists(t, kept)
}
