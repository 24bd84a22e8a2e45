//go:build e2e

package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/test/devnode"
	"github.com/flowlet/flowlet/test/devnode/images"
	"github.com/flowlet/flowlet/test/devnode/images/inside"
)

// view is a pod, and what is to be seen from inside of its containers.
type view struct {
	name  string
	shows string // what it is evidence of, in the words of docs/verified.md
	spec  string // IMAGE, NAMED, NUMBERED are images; DIR is the directory on the host
	not   []string
	until func(*v1.Pod) bool // when to look; nil is the end of the pod
	check func(s *seen)
}

// seen is a view's pod when it is looked at.
type seen struct {
	*agent
	*testing.T
	pod  *v1.Pod
	host string // the directory on the host
}

// The runtimes that views may leave out.
const old, crun = "old", "crun"

// What a pod's spec asks for is what its processes find, on the newest runtime that there is.
func TestInside(t *testing.T) { lookInside(t, node) }

// The same on an older line of containerd, with an older runc.
func TestInsideOnOldContainerd(t *testing.T) { lookInside(t, startOld(t), old) }

// The same with crun, which makes containers in its own way. That of the distribution knows its containerd only.
func TestInsideWithCrun(t *testing.T) {
	lookInside(t, startBeside(t, devnode.Config{Debian: true, Crun: true}), old, crun)
}

// lookInside runs the pods of all views side by side, but for those that the runtime cannot have.
func lookInside(t *testing.T, n *devnode.Node, without ...string) {
	var views []view
	for _, group := range [][]view{texts(), places(), rights(), sizes(), files(), newer(), ends(), refusals()} {
		for _, v := range group {
			if !slices.ContainsFunc(v.not, func(what string) bool { return slices.Contains(without, what) }) {
				views = append(views, v)
			}
		}
	}
	a := newAgent(t, n)
	a.config["podPidsLimit"] = pidsOfPods
	a.config["allowedUnsafeSysctls"] = []string{"net.core.*"}
	a.config["featureGates"] = map[string]bool{"ContainerStopSignals": true}
	a.writeProfile()
	host := a.hostDirectory()
	for _, v := range views {
		spec := strings.NewReplacer("DIR", host, "NAMED", images.Named, "NUMBERED", images.Numbered, "SOCKET", strings.TrimPrefix(n.Endpoint, "unix://")).Replace(v.spec)
		a.write(v.name+".yaml", podOf(v.name, "restartPolicy: Never\n"+spec))
	}
	a.start()
	for _, v := range views {
		begin := time.Now()
		good := t.Run(v.name, func(t *testing.T) {
			until := v.until
			if until == nil {
				until = hasEnded
			}
			part := a.in(t)
			v.check(&seen{agent: part, T: t, pod: part.untilPod(v.name, "can be looked at", until), host: host})
			part.saw(v.shows)
		})
		if !good && time.Since(begin) >= patience {
			t.FailNow() // so will the others be
		}
	}
	t.Run("links to the logs", func(t *testing.T) {
		a.in(t).logsAreLinked()
		a.in(t).saw("log files in the CRI's format, links below `/var/log/containers`")
	})
}

func hasEnded(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
}

// report is what a container of the pod has reported.
func (s *seen) report(container string) (r inside.Report) {
	s.Helper()
	text := s.output(s.pod, container)
	require.NoError(s, json.Unmarshal([]byte(text), &r), "%s: %s", outline(s.pod), text)
	return r
}

// terminated is how a container has ended.
func (s *seen) terminated(container string) v1.ContainerStateTerminated {
	s.Helper()
	c := status(s.pod, container)
	require.NotNil(s, c)
	require.NotNil(s, c.State.Terminated, outline(s.pod))
	return *c.State.Terminated
}

// waiting is why a container waits.
func (s *seen) waiting(container string) v1.ContainerStateWaiting {
	s.Helper()
	c := status(s.pod, container)
	require.NotNil(s, c)
	require.NotNil(s, c.State.Waiting, outline(s.pod))
	return *c.State.Waiting
}

// hostDirectory makes what the views' host paths show: a mount that mounts can be shared with, and another one below it.
func (a *agent) hostDirectory() string {
	a.t.Helper()
	dir := filepath.Join(a.dir, "host")
	for _, d := range []string{"a", "mounted", "below/deep"} {
		require.NoError(a.t, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	require.NoError(a.t, os.WriteFile(filepath.Join(dir, "a/file"), []byte("one file\n"), 0o644))
	require.NoError(a.t, os.Symlink("/etc", filepath.Join(dir, "etc")))
	require.NoError(a.t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	for _, m := range []struct{ from, to, kind string }{{dir + "/mounted", dir + "/mounted", ""}, {"tmpfs", dir + "/below/deep", "tmpfs"}} {
		flags := uintptr(0)
		if m.kind == "" {
			flags = unix.MS_BIND
		}
		require.NoError(a.t, unix.Mount(m.from, m.to, m.kind, flags, ""))
		a.t.Cleanup(func() { _ = unix.Unmount(m.to, unix.MNT_DETACH) })
		require.NoError(a.t, unix.Mount("", m.to, "", unix.MS_SHARED, ""))
	}
	return dir
}

// get is what a web server answers.
func (s *seen) get(url string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
