package main

import (
	"context"
	"fmt"
	"os"

	"github.com/flowlet/flowlet/test/devnode"
)

// wantJaeger says whether the user asked for it.
func wantJaeger() bool { return os.Getenv("JAEGER") != "" }

// startJaeger starts Jaeger, has flowlet send all its traces there and tells how to read them.
func (p *play) startJaeger(ctx context.Context) (stop func() error, err error) {
	j, err := devnode.StartJaeger(ctx, p.dir, os.Stderr)
	if err != nil {
		return nil, fmt.Errorf("start Jaeger: %w", err)
	}
	p.tracing = j.OTLP
	fmt.Printf(`Jaeger is up: OTLP on %s, traces are kept in memory. Its Go module has no files of the user interface, so ask its API:
  curl '%s/api/traces?service=flowlet&operation=pod.start'
A trace is there a few seconds after its episode is over.
`, j.OTLP, j.Query)
	return func() error { return j.Stop(context.WithoutCancel(ctx)) }, nil
}
