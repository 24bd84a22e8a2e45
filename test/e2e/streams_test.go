//go:build e2e

package e2e_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/test/devnode"
)

const talker = `
terminationGracePeriodSeconds: 1
containers:
- {name: talks, image: IMAGE, args: [log, -every, 50ms, hello]}
- {name: crashes, image: IMAGE, args: [crash, -after, 500ms, -code, "3", boom]}
- {name: reads, image: IMAGE, args: [cat], stdin: true}
- {name: serves, image: IMAGE, args: [serve, -text, "seen through a port\n"]}
`

// reaching is a command of flowlet that asks the agent, not started yet.
func (a *agent) reaching(name string, args ...string) *exec.Cmd {
	return a.command(append([]string{name, "--root-dir", a.root}, args...)...)
}

// started starts a command, gives the lines that it prints, and kills it at the end of the test.
func started(t *testing.T, cmd *exec.Cmd) *bufio.Scanner {
	t.Helper()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return bufio.NewScanner(out)
}

func line(t *testing.T, s *bufio.Scanner) string {
	t.Helper()
	require.True(t, s.Scan(), "the output is over: %v", s.Err())
	return s.Text()
}

// descriptors is how many files and connections the agent has open.
func (a *agent) descriptors() int {
	a.t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", a.proc.cmd.Process.Pid))
	require.NoError(a.t, err)
	return len(open)
}

// What users do with a container that runs: read its log, run something in it, attach, forward a port. And none of them leaves
// anything behind in the agent, however it ends.
func TestStreams(t *testing.T) { testStreams(t, node) }

// The distribution's containerd knows older protocols only.
func TestStreamsOnOldContainerd(t *testing.T) { testStreams(t, startOld(t)) }

func testStreams(t *testing.T, n *devnode.Node) {
	sawOn(t, n, "`logs`, `exec`, `attach`, `port-forward`")
	a := startAgent(t, n, "talker.yaml", podOf("talker", talker))
	a.untilPod("talker", "has crashed and has the others", func(p *v1.Pod) bool {
		for _, c := range []string{"talks", "reads", "serves"} {
			if s := status(p, c); s == nil || s.State.Running == nil {
				return false
			}
		}
		s := status(p, "crashes")
		return s != nil && s.RestartCount >= 1
	})
	before := a.descriptors()
	for name, test := range map[string]func(*agent){
		"logs": logsOfTalker, "exec": execInTalker, "terminal": terminalInTalker, "attach": attachToTalker, "port-forward": forwardToTalker,
	} {
		t.Run(name, func(t *testing.T) { test(a.in(t)) })
	}
	a.until("no connection is left", func() error {
		if now := a.descriptors(); now > before+2 { // the reading of events and of manifests comes and goes
			return fmt.Errorf("%d descriptors were open before, %d are now", before, now)
		}
		return nil
	})
	a.remove("talker.yaml")
	a.untilGone()
}

func logsOfTalker(a *agent) {
	out, code := a.run("logs", "talker", "-c", "talks", "--tail", "2")
	require.Zero(a.t, code, out)
	require.Regexp(a.t, `^\d+ hello\n\d+ hello\n$`, out)
	out, code = a.run("logs", "talker", "-c", "talks", "--timestamps", "--tail", "1", "--since", "1h")
	require.Zero(a.t, code, out)
	require.Regexp(a.t, `^20\d\d-\d\d-\d\dT\S+Z \d+ hello\n$`, out)
	out, code = a.run("logs", "talker", "-c", "talks", "--since-time", "2126-01-02T03:04:05Z")
	require.Zero(a.t, code)
	require.Empty(a.t, out)
	out, code = a.run("logs", "talker", "-c", "talks", "--limit-bytes", "3")
	require.Zero(a.t, code)
	require.Equal(a.t, "1 h", out)
	out, code = a.run("logs", "talker", "-c", "crashes", "--previous")
	require.Zero(a.t, code, out)
	require.Equal(a.t, "boom\n", out)
	out, code = a.run("logs", "talker", "-c", "talks", "--previous")
	require.Equal(a.t, 1, code)
	require.Equal(a.t, "flowlet: previous terminated container \"talks\" in pod \"talker-"+nodeName+"\" not found\n", out)
	out, _ = a.run("logs", "talker", "--all-containers", "--tail", "1")
	require.Regexp(a.t, `(?m)^\[pod/talker-e2e/talks\] \d+ hello$`, out)
	require.Contains(a.t, out, "[pod/talker-e2e/serves] ")

	cmd := a.reaching("logs", "talker", "-c", "talks", "-f", "--tail", "1")
	lines := started(a.t, cmd)
	number := func() int {
		n, err := strconv.Atoi(strings.TrimSuffix(line(a.t, lines), " hello"))
		require.NoError(a.t, err)
		return n
	}
	first := number()
	for i := 1; i <= 20; i++ {
		require.Equal(a.t, first+i, number(), "a line is missing")
	}
	require.NoError(a.t, cmd.Process.Signal(os.Interrupt))
	require.NoError(a.t, cmd.Wait())
}

func execInTalker(a *agent) {
	run := func(in string, args ...string) (string, string, int) {
		cmd := a.reaching("exec", args...)
		cmd.Stdin = strings.NewReader(in)
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		if err := cmd.Run(); err != nil {
			_, ended := errors.AsType[*exec.ExitError](err)
			require.True(a.t, ended, "%v", err)
		}
		return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
	}
	_, errOut, code := run("", "talker", "-c", "talks", "--", "/bin/exit", "7")
	require.Equal(a.t, 7, code, errOut)
	require.Empty(a.t, errOut)
	big := strings.Repeat("typed by nobody\n", 20_000)
	out, errOut, code := run(big, "-i", "talker", "-c", "talks", "--", "/bin/cat")
	require.Zero(a.t, code, errOut)
	require.Equal(a.t, big, out)
	out, errOut, code = run("", "talker", "-c", "talks", "--", "/bin/crash", "-after", "0s", "-code", "9", "to standard error")
	require.Equal(a.t, 9, code)
	require.Empty(a.t, out)
	require.Equal(a.t, "to standard error\n", errOut)
	_, errOut, code = run("", "talker", "-c", "talks", "--", "/bin/nope")
	require.NotZero(a.t, code)
	require.Contains(a.t, errOut, "/bin/nope")

	// The command's input ends when its client is killed, and so does the command.
	cmd := a.reaching("exec", "-i", "talker", "-c", "talks", "--", "/bin/cat")
	in, err := cmd.StdinPipe()
	require.NoError(a.t, err)
	lines := started(a.t, cmd)
	_, err = io.WriteString(in, "it runs\n")
	require.NoError(a.t, err)
	require.Equal(a.t, "it runs", line(a.t, lines))
	require.NoError(a.t, cmd.Process.Kill())
	a.until("the command has ended in the container", func() error {
		for _, pid := range processesNamed(a.t, "/bin/cat") {
			return fmt.Errorf("process %s goes on", pid)
		}
		return nil
	})
}

// processesNamed are the processes of exactly that command line.
func processesNamed(t *testing.T, command string) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	var pids []string
	for _, file := range all {
		if b, err := os.ReadFile(file); err == nil && strings.TrimRight(string(b), "\x00") == command {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

func terminalInTalker(a *agent) {
	master, slave := openPTY(a.t)
	resize := func(rows, cols uint16) {
		require.NoError(a.t, unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}))
	}
	resize(30, 100)
	cmd := a.reaching("exec", "-it", "talker", "-c", "talks", "--", "/bin/size")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(a.t, cmd.Start())
	require.NoError(a.t, slave.Close())
	lines := bufio.NewScanner(master)
	until := func(want string) {
		for line(a.t, lines) != want { // before it is told the size, a terminal has another one
		}
	}
	until("30 100")
	resize(40, 120)
	until("40 120")
	_, err := master.Write([]byte{3}) // Ctrl-C goes to the command
	require.NoError(a.t, err)
	require.Error(a.t, cmd.Wait())
	require.Equal(a.t, 130, cmd.ProcessState.ExitCode())
}

// openPTY makes a terminal with its two ends.
func openPTY(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = master.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	return master, slave
}

func attachToTalker(a *agent) {
	cmd := a.reaching("attach", "-i", "talker", "-c", "reads")
	in, err := cmd.StdinPipe()
	require.NoError(a.t, err)
	lines := started(a.t, cmd)
	for _, text := range []string{"one", "two"} {
		_, err := io.WriteString(in, text+"\n")
		require.NoError(a.t, err)
		require.Equal(a.t, text, line(a.t, lines))
	}
	require.NoError(a.t, cmd.Process.Signal(os.Interrupt))
	require.Error(a.t, cmd.Wait())
	require.Equal(a.t, 130, cmd.ProcessState.ExitCode())
	a.until("what was typed is in the log", func() error {
		out, _ := a.run("logs", "talker", "-c", "reads")
		return missing(out, "one\ntwo\n")
	})
}

func forwardToTalker(a *agent) {
	cmd := a.reaching("port-forward", "talker", ":8080")
	lines := started(a.t, cmd)
	found := regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:\d+) -> 8080$`).FindStringSubmatch(line(a.t, lines))
	require.NotNil(a.t, found)
	go func() {
		for lines.Scan() { //nolint:revive // the rest is of no interest
		}
	}()
	for range 3 {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get("http://" + found[1] + "/")
		require.NoError(a.t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(a.t, err)
		require.NoError(a.t, resp.Body.Close())
		require.Equal(a.t, "seen through a port\n", string(body))
	}
	require.NoError(a.t, cmd.Process.Signal(os.Interrupt))
	require.NoError(a.t, cmd.Wait())
}

// Logs are files: they can be read while the runtime is away, also by an agent that has not seen it.
func TestLogsWhileTheRuntimeIsAway(t *testing.T) {
	sawOn(t, node, "`logs` while the runtime is away")
	a := startAgent(t, node, "speaks.yaml", podOf("speaks", `containers: [{name: main, image: IMAGE, args: [log, -every, 1h, spoken]}]`))
	a.untilPod("speaks", "is ready", isReady)
	spoken := func() error {
		out, _ := a.run("logs", "speaks")
		return missing(out, "1 spoken\n")
	}
	a.until("it has spoken", spoken)
	restored := false
	t.Cleanup(func() {
		if !restored { // for the tests to come
			_ = node.RestartRuntime(t.Context())
		}
	})
	require.NoError(t, node.StopRuntime(t.Context()))
	a.until("it can be read", spoken)
	a.kill()
	a.start()
	a.until("it can be read by an agent that starts", spoken)
	require.NoError(t, node.RestartRuntime(t.Context()))
	restored = true
	a.untilPod("speaks", "is ready", isReady)
}
