//go:build e2e

package private_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowlet/flowlet/test/devnode/leak"
	"github.com/flowlet/flowlet/test/devnode/private"
	"github.com/flowlet/flowlet/test/devnode/sweep"
)

// workEnv makes the test binary the program under test, in this work directory.
const workEnv = "FLOWLET_TEST_WORK"

func TestMain(m *testing.M) {
	if dir := os.Getenv(workEnv); dir != "" {
		os.Exit(private.Run(dir, inside))
	}
	os.Exit(m.Run())
}

// inside leaves traces of all kinds, says that it is ready, and waits if it is told to.
func inside(st sweep.State) int {
	for _, dir := range []string{"/run/netns", "/run/containerd", "/var/log/pods", "/var/lib/cni"} {
		if err := os.WriteFile(filepath.Join(dir, "trace"), nil, 0o644); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	mounts, err := sweep.CgroupMounts()
	if err != nil || len(mounts) == 0 {
		fmt.Println("no cgroups", err)
		return 1
	}
	pod := filepath.Join(mounts[0].Path, st.Cgroup, "pod", "container")
	if err := os.MkdirAll(pod, 0o755); err != nil {
		fmt.Println(err)
		return 1
	}
	orphan := exec.Command("sleep", "1000")
	orphan.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := orphan.Start(); err != nil {
		fmt.Println(err)
		return 1
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM, syscall.SIGINT) // before anybody is told that there is something to signal
	fmt.Println("ready", st.ID)
	if os.Getenv("WAIT") == "" {
		return 42
	}
	<-c
	return 43
}

// program is the test binary as the program under test.
func program(t *testing.T, dir string, env ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), workEnv+"="+dir), env...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 20 * time.Second
	return cmd, &out
}

// noLeak fails when, after the test, something is left of what is not the test's own directory.
//
// The result collects what the programs of the test say: it names their nodes.
func noLeak(t *testing.T) *strings.Builder {
	t.Helper()
	var seen strings.Builder
	before, err := leak.Take()
	require.NoError(t, err)
	t.Cleanup(func() {
		var diff []string
		require.Eventually(t, func() bool {
			after, err := leak.Take()
			require.NoError(t, err)
			diff = leak.Own(leak.Diff(before, after), after, func(id string) bool { return strings.Contains(seen.String(), "ready "+id) })
			return len(diff) == 0
		}, 10*time.Second, 100*time.Millisecond, "left behind: %q", &diff)
	})
	return &seen
}

func TestRunPassesTheExitCodeAndLeavesNothing(t *testing.T) {
	seen := noLeak(t)
	dir := t.TempDir()
	cmd, out := program(t, dir)
	err := cmd.Run()
	require.Equal(t, 42, cmd.ProcessState.ExitCode(), "%v %s", err, out)
	seen.WriteString(out.String())
	require.NoFileExists(t, filepath.Join(dir, "state.json"))
	require.FileExists(t, filepath.Join(dir, "log", "pods", "trace"), "logs are on disk")
	require.NoFileExists(t, "/run/netns/trace")
}

func TestRunPassesSignals(t *testing.T) {
	seen := noLeak(t)
	cmd, _ := program(t, t.TempDir(), "WAIT=1")
	start(t, cmd, seen)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait()
	require.Equal(t, 43, cmd.ProcessState.ExitCode())
}

func TestOnlyOneRunInADirectory(t *testing.T) {
	seen := noLeak(t)
	dir := t.TempDir()
	first, _ := program(t, dir, "WAIT=1")
	start(t, first, seen)
	second, out := program(t, dir)
	require.Error(t, second.Run())
	require.Contains(t, out.String(), fmt.Sprintf("in use by process %d", first.Process.Pid))
	require.NoError(t, first.Process.Signal(syscall.SIGINT))
	_ = first.Wait()
	require.Equal(t, 43, first.ProcessState.ExitCode())
}

func TestNextRunCleansUpAfterAKill(t *testing.T) {
	seen := noLeak(t)
	dir := t.TempDir()
	first, _ := program(t, dir, "WAIT=1")
	start(t, first, seen)
	st, err := sweep.Load(dir)
	require.NoError(t, err)
	require.NoError(t, first.Process.Kill())
	_ = first.Wait()
	mounts, err := sweep.CgroupMounts()
	require.NoError(t, err)
	require.DirExists(t, filepath.Join(mounts[0].Path, st.Cgroup), "the kill left a cgroup to clean up")

	second, out := program(t, dir)
	err = second.Run()
	require.Equal(t, 42, second.ProcessState.ExitCode(), "%v %s", err, out)
	seen.WriteString(out.String())
	require.NoDirExists(t, filepath.Join(mounts[0].Path, st.Cgroup))
}

func TestNothingIsLeftWhenTheDirectoryWasRemoved(t *testing.T) {
	seen := noLeak(t)
	dir := filepath.Join(t.TempDir(), "work")
	cmd, _ := program(t, dir, "WAIT=1")
	start(t, cmd, seen)
	require.NoError(t, os.Rename(dir, dir+".moved")) // removing would go into what is mounted there
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait()
	require.Equal(t, 43, cmd.ProcessState.ExitCode())
}

// start starts the program and waits until it is inside and ready.
func start(t *testing.T, cmd *exec.Cmd, seen *strings.Builder) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	cmd.Stdout = w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line := make([]byte, 256)
	n, err := r.Read(line)
	require.NoError(t, err)
	seen.Write(line[:n])
	require.True(t, strings.HasPrefix(string(line[:n]), "ready"), "%s", line[:n])
}
