package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/flowlet/flowlet/internal/crifact"
)

func (p *Prober) exec(ctx context.Context, t Target) (Outcome, string, error) {
	command := expand(t.Probe.Exec.Command, t.Container.Env)
	answer, err := p.Exec.ExecSync(ctx, t.ID, command, t.timeout())
	if tooLate(err) {
		return Failure, fmt.Sprintf("command timed out: %q timed out after %s", strings.Join(command, " "), t.timeout()), nil
	}
	if err != nil {
		return None, "", err
	}
	output := string(answer.GetStdout()) + string(answer.GetStderr())
	if answer.GetExitCode() != 0 {
		return Failure, output, nil
	}
	return Success, output, nil
}

func tooLate(err error) bool {
	return err != nil && (errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded)
}

// expand replaces references to variables whose value the spec itself says;
// those that come from elsewhere count as empty, unknown ones stay as they are.
func expand(command []string, env []v1.EnvVar) []string {
	values := make(map[string]string, len(env))
	for i := range env {
		values[env[i].Name] = env[i].Value
	}
	out := make([]string, len(command))
	for i, arg := range command {
		out[i] = crifact.Expand(arg, func(name string) (string, bool) {
			value, known := values[name]
			return value, known
		})
	}
	return out
}
