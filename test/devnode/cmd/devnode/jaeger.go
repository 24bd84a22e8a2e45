package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/flowlet/flowlet/test/devnode/toolbox"
)

// startJaeger starts Jaeger with its default configuration: spans are kept in memory, OTLP on port 4317, questions on
// 16686. Its module brings no user interface.
func (p *play) startJaeger(ctx context.Context) (stop func(), err error) {
	dir, err := toolbox.Jaeger(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(p.dir, "log", "jaeger.log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(filepath.Join(dir, "jaeger"))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.tracing = "127.0.0.1:4317"
	fmt.Println("Jaeger is up: traces at http://127.0.0.1:16686/api/traces?service=flowlet")
	return func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}, nil
}
