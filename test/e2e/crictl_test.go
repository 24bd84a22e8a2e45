//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
)

// crictl is the output of crictl on the agent's runtime.
func (a *agent) crictl(args ...string) ([]byte, error) {
	cmd := a.node.Command(context.WithoutCancel(a.t.Context()), "crictl", args...)
	cmd.Stdout, cmd.Stderr = nil, nil
	out, err := cmd.Output()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return out, fmt.Errorf("crictl %s: %w: %s", args[0], err, ended.Stderr)
	}
	return out, err
}
