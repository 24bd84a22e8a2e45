package devnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// daemon is a child process that is to run until it is stopped.
type daemon struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{} // closed when the process has ended
	err   error         // how, to be read after ended
}

// startDaemon starts a command with its output in a log file. The command's context must not end before stop.
func startDaemon(cmd *exec.Cmd, log string) (*daemon, error) {
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &daemon{cmd: cmd, log: log, ended: make(chan struct{})}
	go func() {
		defer close(d.ended)
		d.err = cmd.Wait()
	}()
	return d, nil
}

// stop asks the process to end and waits for it. It kills it when the context ends.
func (d *daemon) stop(ctx context.Context) error {
	_ = d.cmd.Process.Signal(unix.SIGTERM)
	select {
	case <-d.ended:
		return nil
	case <-ctx.Done():
		_ = d.cmd.Process.Kill()
		<-d.ended
		return fmt.Errorf("%s did not end when asked to: %w (log: %s)", filepath.Base(d.cmd.Path), context.Cause(ctx), d.log)
	}
}

// await polls until ready says so. It fails when the process ends or the context does.
func (d *daemon) await(ctx context.Context, ready func(context.Context) error) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var reason error
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			reason = err
		}
		select {
		case <-d.ended:
			return fmt.Errorf("%s ended (%v): %s", filepath.Base(d.cmd.Path), d.err, d.lastLines())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s is not ready: %w: %s", filepath.Base(d.cmd.Path), context.Cause(ctx), d.lastLines()), reason)
		case <-tick.C:
		}
	}
}

// lastLines is the end of the log.
func (d *daemon) lastLines() string {
	b, err := os.ReadFile(d.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return d.log + ":\n" + strings.Join(lines[max(0, len(lines)-15):], "\n")
}
