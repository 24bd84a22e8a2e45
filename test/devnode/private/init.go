package private

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/flowlet/flowlet/test/devnode/sweep"
)

// becomeInit is the program of roleInit, the first process of the PID namespace: it makes the private mounts and the
// cgroup, starts the program and reaps what nobody waits for. When it ends, the kernel kills all that is left.
func becomeInit() (int, error) {
	// Namespaces of a thread, not of the process: from here on only this thread opens files and forks.
	runtime.LockOSThread()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)

	dir := os.Getenv(dirEnv)
	st, err := sweep.Load(dir)
	if err != nil {
		return 1, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return 1, err
	}
	exe, err := os.Executable()
	if err != nil {
		return 1, err
	}
	if err := ownRoot(); err != nil {
		return 1, err
	}
	if err := mountSystem(true); err != nil {
		return 1, err
	}
	if err := mountFixedPaths(dir); err != nil {
		return 1, err
	}
	if err := sweep.MakeCgroup(st); err != nil {
		return 1, err
	}
	if err := os.Chdir(cwd); err != nil {
		return 1, err
	}
	pid, err := syscall.ForkExec(exe, append([]string{exe}, os.Args[1:]...), &syscall.ProcAttr{
		Env:   roleEnviron(roleInside, dir),
		Files: []uintptr{0, 1, 2},
	})
	if err != nil {
		return 1, err
	}
	go func() {
		for sig := range signals {
			_ = syscall.Kill(pid, sig.(syscall.Signal))
		}
	}()
	return reap(pid)
}

// reap waits for all children, adopted ones too, until pid has ended, and returns its exit code.
func reap(pid int) (int, error) {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 1, os.NewSyscallError("wait4", err)
		case got == pid && status.Exited():
			return status.ExitStatus(), nil
		case got == pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		}
	}
}
