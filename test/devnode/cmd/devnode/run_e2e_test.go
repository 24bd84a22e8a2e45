//go:build e2e

package main_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/test/devnode/leak"
	"github.com/flowlet/flowlet/test/devnode/toolbox"
)

// session is one run of the program behind make run.
type session struct {
	t    *testing.T
	dir  string
	cmd  *exec.Cmd
	out  *bufio.Reader
	text strings.Builder // what it printed so far

	ended chan struct{} // closed when the process has ended
}

// startRun builds the programs of the checkout and starts a run in a directory of its own.
func startRun(t *testing.T, prepare func(*exec.Cmd), env ...string) *session {
	t.Helper()
	repo, err := toolbox.Repo()
	require.NoError(t, err)
	build := exec.CommandContext(t.Context(), "make", "build", "bin/devnode")
	build.Dir = repo
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)

	dir, err := os.MkdirTemp("", "flowlet") // sockets below: the path has to be short
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o777))
	s := &session{t: t, dir: dir, ended: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	t.Cleanup(func() {
		cancel()
		_, _ = io.Copy(io.Discard, s.out)
		<-s.ended
		if !t.Failed() {
			require.NoError(t, os.RemoveAll(dir))
		}
	})
	s.cmd = exec.CommandContext(ctx, filepath.Join(repo, "bin", "devnode"), "run")
	s.cmd.Dir = repo
	s.cmd.Env = append(append(os.Environ(), "RUN_DIR="+dir), env...)
	r, w := io.Pipe()
	s.cmd.Stdout, s.cmd.Stderr, s.out = w, w, bufio.NewReader(r)
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = 2 * time.Minute
	if prepare != nil {
		prepare(s.cmd)
	}
	require.NoError(t, s.cmd.Start())
	go func() {
		defer close(s.ended)
		w.CloseWithError(s.wait())
	}()
	return s
}

// wait maps the end of the process to an error that a reader of its output sees.
func (s *session) wait() error {
	if err := s.cmd.Wait(); err != nil {
		return err
	}
	return io.EOF
}

// until reads the output up to a line that contains the text, and returns the line.
func (s *session) until(text string) string {
	s.t.Helper()
	for {
		line, err := s.out.ReadString('\n')
		s.text.WriteString(line)
		if strings.Contains(line, text) {
			return strings.TrimSpace(line)
		}
		require.NoError(s.t, err, "before %q: %s", text, &s.text)
	}
}

// end reads the rest of the output and requires exit code 0.
func (s *session) end() {
	s.t.Helper()
	rest, err := io.ReadAll(s.out)
	s.text.Write(rest)
	require.NoError(s.t, err, "%s", &s.text)
}

// noLeak requires, now and when the session has ended, that the machine is as it was.
func noLeak(t *testing.T, run func() *session) {
	t.Helper()
	before, err := leak.Take()
	require.NoError(t, err)
	s := run()
	var diff []string
	require.Eventually(t, func() bool {
		after, err := leak.Take()
		require.NoError(t, err)
		diff = leak.Own(leak.Diff(before, after), after, func(id string) bool { return strings.Contains(s.text.String(), "cgroup /flowlet-"+id) })
		diff = slices.DeleteFunc(diff, func(d string) bool { return strings.Contains(d, s.dir) })
		return len(diff) == 0
	}, 20*time.Second, 200*time.Millisecond, "left behind: %q", &diff)
}

// The whole story: the pods come up, the second terminal works, curl is answered, Ctrl-C takes everything down.
func TestRunShowsPodsAndLeavesNothing(t *testing.T) {
	noLeak(t, func() *session {
		s := startRun(t, nil)
		s.until("In a second terminal:")
		var commands [][]string
		for range 4 {
			commands = append(commands, strings.Fields(s.until("--root-dir")))
		}
		url := strings.TrimPrefix(s.until("$ curl http://"), "$ curl ")
		require.Contains(t, s.until("Hello"), "from a pod that flowlet started")
		require.Contains(t, fetch(t, url), "Hello")
		s.until("press Ctrl-C")
		require.Regexp(t, `default/web\S*\s+Running\s+1/1 ready`, s.text.String())
		require.Regexp(t, `default/shared\S*\s+Running\s+2/2 ready`, s.text.String())
		require.Regexp(t, `default/job\S*\s+Succeeded`, s.text.String())
		require.Regexp(t, `default/crash\S*\s+Running\s+0/1 ready CrashLoopBackOff`, s.text.String())
		for i, want := range []string{"web", "crash", "sandbox", "sandbox"} { // get pods, why, dag, trace
			out, err := exec.CommandContext(t.Context(), commands[i][0], commands[i][1:]...).CombinedOutput()
			if i != 1 { // why says with its exit code that the pod is waiting
				require.NoError(t, err, "%s: %s", commands[i], out)
			}
			require.Contains(t, string(out), want, "%s", commands[i])
		}
		require.NoError(t, s.cmd.Process.Signal(os.Interrupt))
		s.until("all pods are gone")
		s.end()
		return s
	})
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(b)
}

// After a SIGKILL in the middle, one sweep cleans up.
func TestKilledRunIsSweptLater(t *testing.T) {
	noLeak(t, func() *session {
		s := startRun(t, nil)
		s.until("Running")
		require.NoError(t, s.cmd.Process.Kill())
		_, _ = io.ReadAll(s.out)
		sweep := exec.CommandContext(t.Context(), s.cmd.Path, "sweep")
		sweep.Env = s.cmd.Env
		out, err := sweep.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return s
	})
}

// Without root the same pods run in the simulated runtime.
func TestRunWithoutRoot(t *testing.T) {
	noLeak(t, func() *session {
		s := startRun(t, func(cmd *exec.Cmd) {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}, "RUN_FOR=20s", "HOME=/nonexistent")
		s.until("simulated runtime: no containers, cgroups or mounts, and nothing for curl")
		s.until("ends by itself")
		require.Regexp(t, `default/web\S*\s+Running\s+1/1 ready`, s.text.String())
		require.Regexp(t, `default/job\S*\s+Succeeded`, s.text.String())
		s.until("all pods are gone")
		s.end()
		return s
	})
}
