// Package private runs a program in mount and PID namespaces of its own.
//
// Container runtimes keep shim sockets, network namespaces, addresses and log symlinks at fixed paths, and leave processes
// behind on purpose. Inside, those paths are private directories below one work directory, and everything that was started
// dies with the first process of the namespace, however the program ends. What no namespace holds (the bridge, cgroups,
// firewall rules, a sysctl) is written down in a state file before it is made, and package sweep takes it away: at the end,
// or, after a SIGKILL, at the beginning of the next run in the same directory.
//
// The network namespace is the machine's, so that pods answer to their IP from outside. It works in a chroot, too.
package private

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/flowlet/flowlet/test/devnode/sweep"
)

const (
	roleEnv = "FLOWLET_DEVNODE_ROLE" // unset in the process that the user started
	dirEnv  = "FLOWLET_DEVNODE_DIR"

	roleInit   = "init"   // first process of the namespaces: mounts, starts roleInside, reaps
	roleInside = "inside" // the program
	roleSweep  = "sweep"  // cleans up, in a mount namespace of its own to see all cgroups
)

// Run calls inside in private namespaces and returns its exit code. It has to be the first thing that main or TestMain
// does: it starts the running executable again, with the same arguments, and inside is called in that process. dir is the
// work directory, made when missing and locked meanwhile; its path should not be longer than 60 bytes, because sockets
// live below it. Run needs root.
//
// SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed to the process inside; the third one kills it.
func Run(dir string, inside func(sweep.State) int) int {
	switch os.Getenv(roleEnv) {
	case roleInit:
		return exitCode("prepare the private namespaces", becomeInit)
	case roleSweep:
		return exitCode("clean up", sweepHere)
	case roleInside:
		st, err := sweep.Load(os.Getenv(dirEnv))
		if err != nil {
			return fail("read the state", err)
		}
		// What is started from here may be a private node itself.
		_, _ = os.Unsetenv(roleEnv), os.Unsetenv(dirEnv)
		return inside(st)
	}
	return outside(dir)
}

// Sweep takes away what an earlier run in dir left behind. It does nothing when there is nothing, and fails while a run is
// going on. Like Run it starts the executable again, so main must call Run, with any function, when Started says so.
func Sweep(dir string) error {
	unlock, err := Lock(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unlock()
	return sweepDir(dir)
}

// SweepStale takes away what killed runs left behind in work directories that match the pattern, and the directories. Those
// in use are let alone.
func SweepStale(pattern string) error {
	states, err := filepath.Glob(filepath.Join(pattern, sweep.StateFile))
	for _, path := range states {
		dir := filepath.Dir(path)
		unlock, lockErr := Lock(dir)
		if lockErr != nil {
			continue
		}
		swept := sweepDir(dir)
		if swept == nil {
			swept = os.RemoveAll(dir)
		}
		unlock()
		err = errors.Join(err, swept)
	}
	return err
}

// Started says whether this process was started by Run or Sweep in another process.
func Started() bool { return os.Getenv(roleEnv) != "" }

func outside(dir string) int {
	if os.Geteuid() != 0 {
		return fail("start a private node", errors.New("this needs root: namespaces, mounts and cgroups"))
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fail("find the work directory", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fail("make the work directory", err)
	}
	unlock, err := Lock(dir)
	if err != nil {
		return fail("start a private node", err)
	}
	defer unlock()
	if err := sweepDir(dir); err != nil {
		return fail("clean up what an earlier run left in "+dir, err)
	}
	st, err := sweep.New(dir)
	if err != nil {
		return fail("write down what is to be made", err)
	}
	code := runInit(st.Dir)
	// The state is needed even if a program, or somebody, removed the work directory.
	if err := errors.Join(st.Save(), sweepDir(dir)); err != nil {
		return fail("clean up", err)
	}
	return code
}

// runInit starts the first process of the namespaces and waits for it.
func runInit(dir string) int {
	// The thread that forks must outlive the child, whose death signal is tied to it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	defer signal.Stop(signals)

	cmd, err := again(roleInit, dir)
	if err != nil {
		return fail("find the executable", err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID,
		Pdeathsig:  unix.SIGKILL,
		Setpgid:    true, // Ctrl-C reaches this process alone, which passes it on
	}
	if err := cmd.Start(); err != nil {
		return fail("start private namespaces", err)
	}
	ended := make(chan struct{})
	go passSignals(signals, cmd.Process, ended)
	err = cmd.Wait()
	close(ended)
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return fail("run in private namespaces", err)
}

func passSignals(signals <-chan os.Signal, p *os.Process, ended <-chan struct{}) {
	for n := 1; ; n++ {
		select {
		case sig := <-signals:
			if n >= 3 {
				sig = unix.SIGKILL
			}
			_ = p.Signal(sig)
		case <-ended:
			return
		}
	}
}

// sweepDir cleans up in a process of its own when there is something to clean.
func sweepDir(dir string) error {
	if _, err := sweep.Load(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	cmd, err := again(roleSweep, dir)
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Setpgid: true}
	return cmd.Run()
}

// again is a command that starts this executable with the same arguments in another role.
func again(role, dir string) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe, os.Args[1:]...)
	cmd.Env = roleEnviron(role, dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd, nil
}

func roleEnviron(role, dir string) []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, roleEnv+"=") && !strings.HasPrefix(kv, dirEnv+"=") {
			env = append(env, kv)
		}
	}
	return append(env, roleEnv+"="+role, dirEnv+"="+dir)
}

// Lock takes a work directory, which has to exist, or says which process has it. The kernel gives it back however the
// process ends.
func Lock(dir string) (func(), error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		owner, _ := io.ReadAll(f)
		_ = f.Close()
		return nil, fmt.Errorf("%s is in use by process %s: stop it first", dir, strings.TrimSpace(string(owner)))
	}
	_ = f.Truncate(0)
	_, _ = fmt.Fprintln(f, os.Getpid())
	return func() { _ = f.Close() }, nil
}

// sweepHere is the program of roleSweep.
func sweepHere() (int, error) {
	st, err := sweep.Load(os.Getenv(dirEnv))
	if err != nil {
		return 1, err
	}
	runtime.LockOSThread()
	if err := ownRoot(); err != nil {
		return 1, err
	}
	if err := mountSystem(false); err != nil {
		return 1, err
	}
	return 0, sweep.Sweep(st, 30*time.Second)
}

func exitCode(doing string, do func() (int, error)) int {
	code, err := do()
	if err != nil {
		return fail(doing, err)
	}
	return code
}

func fail(doing string, err error) int {
	fmt.Fprintf(os.Stderr, "devnode: %s: %v\n", doing, err)
	return 1
}
