package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// simWait is how long a simulated runtime of its own may take to start or end.
const simWait = 10 * time.Second

// SimProcess runs `flowlet sim` of this build with a socket in dir and returns
// its endpoint when it answers. stop ends it and waits.
func SimProcess(ctx context.Context, dir string) (endpoint string, stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, fmt.Errorf("looking for this program: %w", err)
	}
	socket := filepath.Join(dir, "sim.sock")
	endpoint = "unix://" + socket
	// Not bound to ctx: after Ctrl-C the runtime is still needed to clean up.
	cmd := exec.Command(self, "sim", "--listen", endpoint) //nolint:gosec,noctx // this program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}  // a terminal's Ctrl-C is for us
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("starting the simulated runtime: %w", err)
	}
	stop = func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		late := time.AfterFunc(simWait, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		return cmd.Wait()
	}
	if err := answers(ctx, socket); err != nil {
		return "", nil, errors.Join(err, stop())
	}
	return endpoint, stop, nil
}

func answers(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, simWait, errors.New("the simulated runtime does not come up"))
	defer cancel()
	tick := time.NewTicker(upEvery)
	defer tick.Stop()
	var dialer net.Dialer
	for {
		if c, err := dialer.DialContext(ctx, "unix", socket); err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
