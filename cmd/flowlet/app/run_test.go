package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/cmd/flowlet/app"
	"github.com/flowlet/flowlet/internal/config"
	"github.com/flowlet/flowlet/internal/journal"
	"github.com/flowlet/flowlet/internal/server"
)

const secret = "sekret-4711"

const manifest = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  os: {name: linux}
  containers:
  - name: a
    image: example.com/app:1
    lifecycle: {stopSignal: SIGUSR1}
    env: [{name: PASSWORD, value: ` + secret + `}]
`

// daemon is an agent that runs in this process until the test ends.
type daemon struct {
	t         *testing.T
	root, dir string
	log       *lockedBuffer
	client    *server.Client
	stop      func() error
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func load(t *testing.T, args ...string) *config.Config {
	t.Helper()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags := config.AddFlags(set)
	require.NoError(t, set.Parse(append([]string{"--prepare-host=false"}, args...)))
	c, err := config.Load(flags)
	require.NoError(t, err)
	return c
}

func start(t *testing.T, root string, args ...string) *daemon {
	t.Helper()
	d := &daemon{t: t, root: root, dir: filepath.Join(root, "manifests"), log: &lockedBuffer{}, client: server.NewClient(root)}
	require.NoError(t, os.MkdirAll(d.dir, 0o750))
	c := load(t, append([]string{
		"--root-dir=" + root, "--pod-manifest-path=" + d.dir, "--hostname-override=n",
		"--container-runtime-endpoint=" + app.SimEndpoint, "--healthz-port=0",
	}, args...)...)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx, c, slog.New(slog.NewTextHandler(d.log, nil))) }()
	d.stop = sync.OnceValue(func() error {
		cancel(errors.New("the test is over"))
		return <-ended
	})
	t.Cleanup(func() { require.NoError(t, d.stop()) })
	d.eventually("the socket answers", func() bool { _, err := d.client.Node(t.Context()); return err == nil })
	return d
}

func (d *daemon) eventually(what string, is func() bool) {
	d.t.Helper()
	require.Eventually(d.t, is, 20*time.Second, 10*time.Millisecond, what)
}

func (d *daemon) write(name, text string) {
	d.t.Helper()
	require.NoError(d.t, os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600))
}

func (d *daemon) running(ref string) {
	d.t.Helper()
	why := ""
	defer func() {
		if d.t.Failed() {
			d.t.Log(why, d.log.String())
		}
	}()
	d.eventually(ref+" runs", func() bool {
		p, err := d.client.Pod(d.t.Context(), ref)
		why = p.Why.Text()
		return err == nil && p.Pod.Status.Phase == v1.PodRunning && len(p.Why.Blocking) == 0
	})
}

func TestAPodFromItsManifestToItsEnd(t *testing.T) {
	root := t.TempDir()
	d := start(t, root)
	d.write("web.yaml", manifest)
	d.running("web")
	ctx := t.Context()

	p, err := d.client.Pod(ctx, "web")
	require.NoError(t, err)
	require.Equal(t, "web-n", p.Pod.Name)
	require.Equal(t, "spec.containers[0].lifecycle.stopSignal (needs the feature gate ContainerStopSignals)", p.Pod.Annotations[server.AnnotationUnsupported])
	var reasons []string
	for _, e := range p.Events {
		reasons = append(reasons, e.Reason)
	}
	require.Contains(t, reasons, "FieldNotSupported")
	require.Contains(t, reasons, "Started")
	require.Contains(t, d.log.String(), "fields of a pod have no effect")

	uid := string(p.Pod.UID)
	log, err := d.client.Journal(ctx, "web")
	require.NoError(t, err)
	require.True(t, has(log, "file: wanted, as in "+filepath.Join(d.dir, "web.yaml")), log.Text())
	require.True(t, has(log, "stage: admitted"), log.Text())
	for _, l := range log.Lines {
		require.NotContains(t, l.Text, secret)
	}

	plan, err := d.client.PlanRemoval(ctx, filepath.Join(d.dir, "web.yaml"))
	require.NoError(t, err)
	require.Len(t, plan.Pods, 1)
	require.Equal(t, "ends", plan.Pods[0].Change)
	require.Equal(t, "stop[a]", plan.Pods[0].Plan.Start[0].ID)

	require.NoError(t, os.Remove(filepath.Join(d.dir, "web.yaml")))
	d.eventually("the pod is gone", func() bool { _, err := d.client.Pod(ctx, uid); return err != nil })
	require.NoFileExists(t, filepath.Join(root, "flowlet", "pods", uid+".json"))
	require.NoError(t, d.stop())
	require.NotContains(t, d.log.String(), secret)
	noSecretBelow(t, filepath.Join(root, "flowlet"))
}

func has(l journal.Log, prefix string) bool {
	for _, line := range l.Lines {
		if len(line.Text) >= len(prefix) && line.Text[:len(prefix)] == prefix {
			return true
		}
	}
	return false
}

func noSecretBelow(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		require.NotContains(t, string(data), secret, path)
		return err
	}))
}

func TestPlanOfAnEditEndsTheOldPod(t *testing.T) {
	d := start(t, t.TempDir())
	d.write("web.yaml", manifest)
	d.running("web")
	path, ctx := filepath.Join(d.dir, "web.yaml"), t.Context()

	same, err := d.client.Plan(ctx, path, []byte(manifest))
	require.NoError(t, err)
	require.Len(t, same.Pods, 1)
	require.Equal(t, "goes on", same.Pods[0].Change)
	require.Empty(t, same.Pods[0].Plan.Start)

	edited, err := d.client.Plan(ctx, path, bytes.ReplaceAll([]byte(manifest), []byte("app:1"), []byte("app:2")))
	require.NoError(t, err)
	require.Len(t, edited.Pods, 2)
	require.Equal(t, []string{"ends", "starts"}, []string{edited.Pods[0].Change, edited.Pods[1].Change})
	require.NotEqual(t, edited.Pods[0].UID, edited.Pods[1].UID)
	require.Equal(t, "name lock: another pod web-n_default (UID "+edited.Pods[0].UID+") is still here", edited.Pods[1].Plan.Later[0].Why)

	elsewhere, err := d.client.Plan(ctx, "/somewhere/web.yaml", []byte(manifest))
	require.NoError(t, err)
	require.Len(t, elsewhere.Notes, 2, "not in the directory, and the name is taken: %v", elsewhere.Notes)
	_, err = d.client.Plan(ctx, path, []byte("kind: Pod"))
	require.ErrorContains(t, err, path+":")
	_, err = d.client.PlanRemoval(ctx, "/somewhere/web.yaml")
	require.ErrorContains(t, err, "no pod comes from /somewhere/web.yaml")
}

func TestBadManifestsAreShownAndTheLastGoodPodGoesOn(t *testing.T) {
	d := start(t, t.TempDir())
	d.write("web.yaml", manifest)
	d.running("web")
	d.write("web.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: web\n")
	d.write("zz.yaml", manifest)
	d.write("web.yaml~", manifest)
	rows := map[string]server.File{}
	d.eventually("three files are told of", func() bool {
		files, err := d.client.Files(t.Context())
		require.NoError(t, err)
		for _, f := range files {
			rows[filepath.Base(f.Path)] = f
		}
		return rows["web.yaml"].Error != "" && rows["zz.yaml"].Error != "" && rows["web.yaml~"].Ignored != ""
	})
	require.Contains(t, rows["web.yaml"].Error, filepath.Join(d.dir, "web.yaml")+":")
	require.True(t, rows["web.yaml"].Keeps)
	require.Equal(t, filepath.Join(d.dir, "zz.yaml")+": pod default/web-n is already defined by "+filepath.Join(d.dir, "web.yaml"), rows["zz.yaml"].Error)
	require.False(t, rows["zz.yaml"].Keeps)
	d.running("web")
}

func TestManifestDirectoryThatIsNotThere(t *testing.T) {
	d := start(t, t.TempDir())
	require.NoError(t, os.RemoveAll(d.dir))
	files, err := d.client.Files(t.Context())
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.Contains(t, files[0].Error, "staticPodPath "+d.dir+" cannot be read, it is tried again")
}

func TestSecondAgentOnOneRoot(t *testing.T) {
	root := t.TempDir()
	start(t, root)
	c := load(t, "--root-dir="+root, "--container-runtime-endpoint="+app.SimEndpoint, "--healthz-port=0")
	err := app.Run(t.Context(), c, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, fmt.Sprintf("in use by another agent (pid %d, since ", os.Getpid()))
}

func TestHealthzPortThatIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	c := load(t, "--root-dir="+t.TempDir(), "--container-runtime-endpoint="+app.SimEndpoint, "--healthz-port="+port)
	require.ErrorContains(t, app.Run(t.Context(), c, slog.New(slog.DiscardHandler)), "healthzBindAddress, healthzPort: ")
}

// protectKernelDefaults keeps this test from changing a parameter of the
// kernel, whatever the order; it would complain of this machine's first.
func TestConfigurationIsCheckedBeforeTheHostIsPrepared(t *testing.T) {
	c := load(t, "--root-dir", t.TempDir(), "--container-runtime-endpoint", "unix:///nope.sock", "--prepare-host=false",
		"--protect-kernel-defaults", "--eviction-hard", "memory.free<1Gi", "--eviction-soft", "nodefs.available<10%")
	err := app.Run(t.Context(), c, slog.New(slog.DiscardHandler))
	require.EqualError(t, err, "invalid configuration:\n"+
		"  --eviction-hard: evictionHard[memory.free]: there is no such signal; there are memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available\n"+
		"  --eviction-soft: evictionSoft[nodefs.available]: needs evictionSoftGracePeriod[nodefs.available]")
}
