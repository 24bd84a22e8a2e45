package crisim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ExecSync implements the CRI; Script.Exec says what a command does.
func (r *runtimeServer) ExecSync(ctx context.Context, req *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	return serve(ctx, r.Runtime, op[*runtimeapi.ExecSyncResponse]{
		target: r.containerTarget("ExecSync", req.GetContainerId()),
		effect: func(ctx context.Context) (*runtimeapi.ExecSyncResponse, error) {
			resp, err := r.exec(ctx, req)
			if err != nil && status.Code(err) == codes.Unknown {
				err = fmt.Errorf("failed to exec in container: %w", err)
			}
			return resp, err
		},
	})
}

func (r *Runtime) exec(ctx context.Context, req *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error) {
	answer, _, err := r.execAnswer(req.GetContainerId(), req.GetCmd())
	if err != nil {
		return nil, err
	}
	limit := time.Duration(req.GetTimeout()) * time.Second
	if limit > 0 && time.Duration(answer.After) > limit {
		if err := sleep(ctx, limit); err != nil {
			return nil, err
		}
		return nil, status.Errorf(codes.DeadlineExceeded, "failed to exec in container: timeout %s exceeded: context deadline exceeded", limit)
	}
	if err := sleep(ctx, time.Duration(answer.After)); err != nil {
		return nil, err
	}
	return &runtimeapi.ExecSyncResponse{Stdout: []byte(answer.Stdout), Stderr: []byte(answer.Stderr), ExitCode: answer.Code}, nil
}

// execAnswer is what the script says about a command, if anything.
func (r *Runtime) execAnswer(id string, cmd []string) (_ ExecScript, scripted bool, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.running(id)
	if err != nil || c.script == nil {
		return ExecScript{}, false, err
	}
	age := time.Duration(time.Now().UnixNano() - c.started)
	line := strings.Join(cmd, " ")
	for _, e := range c.script.Exec {
		if strings.Contains(line, e.Command) && age >= time.Duration(e.From) && (e.Until == 0 || age < time.Duration(e.Until)) {
			return e, true, nil
		}
	}
	return ExecScript{}, false, nil
}
